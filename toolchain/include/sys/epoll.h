/* <sys/epoll.h> is not in the platform interface (docs/spec/platform.md). */
#error "<sys/epoll.h> is not in the platform interface: struct epoll_event is packed on some processors only: use poll"
