"""The platform interface on three architectures: what is beyond ISO C answers as a native build of the same C does.

Each case is a small library that uses the operating system, built, signed, installed and then called by a program of
another compiler on x86-64, AArch64 and RISC-V, each with glibc 2.34 and with musl.
"""
# ruff: noqa: E501 - C programs in a table, one a line

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from neutral import zig
from programs import KEY

from visget.format.package import VerifiedPackage, verify_package
from visget.format.signing import sign_package
from visget.installer.compile import compile_package
from visget.installer.target import baseline
from visget.toolchain.builder import build_package
from visget.toolchain.project import read_project


@dataclass(frozen=True)
class Works:
    """C that must answer the same everywhere: `int f(char *b, const char *d)` writes its answer into *b*."""

    name: str
    source: str
    wants: str


WORKS = [
    Works("stat", r'''#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
typedef int (*look)(const char *, struct stat *);
static int through(look g, const char *p, struct stat *s) { return g(p, s); }
int f(char *b, const char *d) {
  (void)d;
  struct { struct stat s; char guard[32]; } a[4];
  memset(a, 7, sizeof a);
  FILE *o = fopen("st.bin", "wb"); for (int i = 0; i < 5001; i++) fputc(i, o); fclose(o);
  chmod("st.bin", 0640); unlink("st.lnk"); if (symlink("st.bin", "st.lnk")) return -1;
  int fd = open("st.bin", O_RDONLY);
  if (stat("st.lnk", &a[0].s) || fstat(fd, &a[1].s) || through(lstat, "st.lnk", &a[2].s) || fstatat(AT_FDCWD, "st.lnk", &a[3].s, AT_SYMLINK_NOFOLLOW)) return -2;
  close(fd);
  struct timespec times[2] = {{1700000000, 5000}, {1600000000, 7000}};
  utimensat(AT_FDCWD, "st.bin", times, 0); stat("st.bin", &a[0].s);
  int r = 0; for (int i = 0; i < 4; i++) for (int k = 0; k < 32; k++) r += a[i].guard[k] != 7;
  sprintf(b, "%d %o %ld %ld %d | %d %d | %d %ld %d %d | %ld %ld %ld %ld | %d %d", S_ISREG(a[0].s.st_mode), a[0].s.st_mode & 07777, (long)a[0].s.st_size, (long)a[1].s.st_size, (int)a[0].s.st_nlink,
    a[0].s.st_ino == a[1].s.st_ino && a[0].s.st_dev == a[1].s.st_dev, a[2].s.st_ino == a[3].s.st_ino, S_ISLNK(a[2].s.st_mode), (long)a[2].s.st_size, a[2].s.st_blksize > 0, a[0].s.st_blocks > 0,
    (long)a[0].s.st_atime, (long)a[0].s.st_atim.tv_nsec, (long)a[0].s.st_mtime, (long)a[0].s.st_mtim.tv_nsec, a[0].s.st_uid == getuid(), stat("nothing", &a[0].s));
  unlink("st.lnk"); unlink("st.bin");
  return r;
}''', "0 1 640 5001 5001 1 | 1 1 | 1 6 1 1 | 1700000000 5000 1600000000 7000 | 1 -1"),
    Works("open-flags", r'''#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static int why(int fd) { int e = fd < 0 ? errno : 0; if (fd >= 0) close(fd); return e == ENOTDIR ? 1 : e == ELOOP ? 2 : e == EEXIST ? 3 : e; }
int f(char *b, const char *d) {
  unlink("of.bin"); unlink("of.lnk");
  int fd = open("of.bin", O_CREAT | O_EXCL | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0 || symlink("of.bin", "of.lnk")) return -1;
  int exists = why(open("of.bin", O_CREAT | O_EXCL | O_WRONLY, 0600));
  int no_directory = why(open("of.bin", O_RDONLY | O_DIRECTORY)), directory = why(open(d, O_RDONLY | O_DIRECTORY));
  int follow = why(open("of.lnk", O_RDONLY)), no_follow = why(open("of.lnk", O_RDONLY | O_NOFOLLOW)), at = why(openat(AT_FDCWD, "of.lnk", O_RDONLY | O_NOFOLLOW));
  int flags = fcntl(fd, F_GETFL), cloexec = fcntl(fd, F_GETFD);
  int set = fcntl(fd, F_SETFL, O_NONBLOCK), after = fcntl(fd, F_GETFL);
  struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 4};
  int lock = fcntl(fd, F_SETLK, &l), copy = fcntl(fd, F_DUPFD, 100);
  int where = open(d, O_RDONLY | O_DIRECTORY), reported = fcntl(where, F_GETFL) & (O_DIRECTORY | O_NOFOLLOW | O_ACCMODE);
  close(where);
  sprintf(b, "%d %d %d %d %d %d | %d %d %d %d | %d %d %d %d | %d %d", exists, no_directory, directory, follow, no_follow, at, (flags & O_ACCMODE) == O_RDWR, !!(flags & O_APPEND), !!(flags & O_NONBLOCK), cloexec,
    set, !!(after & O_NONBLOCK), !!(after & O_APPEND), (after & (O_DIRECTORY | O_NOFOLLOW)) == 0, lock, copy >= 100);
  close(copy); close(fd); unlink("of.bin"); unlink("of.lnk");
  return reported == O_DIRECTORY;
}''', "1 3 1 0 0 2 2 | 1 1 0 1 | 0 1 0 1 | 0 1"),
    Works("files", r'''#define _GNU_SOURCE
#include <dirent.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
int f(char *b, const char *d) {
  (void)d; char path[] = "fi-XXXXXX", line[PATH_MAX]; int n = 0;
  if (!mkdtemp(path)) return -1;
  for (int i = 0; i < 3; i++) { sprintf(line, "%s/%c", path, 'a' + i); FILE *o = fopen(line, "w"); fprintf(o, "line %d\nnext\n", i); fclose(o); }
  DIR *dir = opendir(path); struct dirent *e; unsigned seen = 0; while ((e = readdir(dir))) if (e->d_name[0] != '.') seen |= 1u << (e->d_name[0] - 'a'), n += strlen(e->d_name) + (e->d_type == DT_REG); closedir(dir);
  sprintf(line, "%s/a", path); FILE *o = fopen(line, "r+"); char *text = NULL; size_t size = 0; long got = getline(&text, &size, o); struct iovec v[2] = {{"xy", 2}, {"z", 1}};
  int fd = fileno(o); fseeko(o, 0, SEEK_END); long end = ftello(o); pwrite(fd, "LINE", 4, 0); char read4[5] = {0}; pread(fd, read4, 4, 0); lseek(fd, 0, SEEK_END); long wrote = writev(fd, v, 2);
  char *map = mmap(NULL, 12, PROT_READ, MAP_PRIVATE, fd, 0); int first = map == MAP_FAILED ? -1 : map[3]; munmap(map, 12); ftruncate(fd, 4); struct stat s; fstat(fd, &s); fclose(o);
  char copy[] = "/usr/lib/", base[32]; strcpy(base, basename(copy)); char real[PATH_MAX]; realpath(path, real);
  sprintf(b, "%u %d | %ld %ld %s %ld %c %ld | %s %s | %d", seen, n, got, end, read4, wrote, first, (long)s.st_size, base, dirname((char[]){"/usr/lib"}), strcmp(strrchr(real, '/') + 1, path));
  for (int i = 0; i < 3; i++) { sprintf(line, "%s/%c", path, 'a' + i); unlink(line); }
  free(text); return rmdir(path);
}''', "0 7 6 | 7 12 LINE 3 E 4 | lib /usr | 0"),
    Works("threads", r'''#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
struct all { char g0[16]; pthread_mutex_t m; char g1[16]; pthread_cond_t c; char g2[16]; pthread_rwlock_t w; char g3[16]; pthread_attr_t a; char g4[16]; pthread_mutexattr_t ma; char g5[16]; pthread_condattr_t ca; char g6[16];
  pthread_barrier_t b; char g7[16]; pthread_barrierattr_t ba; char g8[16]; sem_t s; char g9[16]; pthread_rwlockattr_t wa; char g10[16]; };
static struct all x; static int counter, turns; static pthread_key_t key; static pthread_once_t once = PTHREAD_ONCE_INIT; static _Thread_local int own = 3; static int freed;
static pthread_mutex_t fixed = PTHREAD_MUTEX_INITIALIZER;
static void at_once(void) { pthread_key_create(&key, NULL); }
static void clean(void *p) { freed += *(int *)p; }
static void *work(void *p) {
  int one = 1; pthread_once(&once, at_once); pthread_setspecific(key, p); own += (int)(long)p;
  pthread_barrier_wait(&x.b);
  pthread_cleanup_push(clean, &one);
  for (int i = 0; i < 1000; i++) { pthread_mutex_lock(&x.m); pthread_mutex_lock(&x.m); counter++; pthread_mutex_unlock(&x.m); pthread_mutex_unlock(&x.m); }
  pthread_mutex_lock(&fixed); turns++; pthread_cond_broadcast(&x.c); pthread_mutex_unlock(&fixed);
  pthread_cleanup_pop(1);
  sem_post(&x.s);
  return (void *)((long)pthread_getspecific(key) * 100 + own);
}
int f(char *b, const char *d) {
  (void)d; memset(&x, 7, sizeof x); pthread_t t[4]; long sum = 0; int e = 0;
  e |= pthread_mutexattr_init(&x.ma) | pthread_mutexattr_settype(&x.ma, PTHREAD_MUTEX_RECURSIVE) | pthread_mutex_init(&x.m, &x.ma) | pthread_condattr_init(&x.ca) | pthread_condattr_setclock(&x.ca, CLOCK_MONOTONIC) | pthread_cond_init(&x.c, &x.ca);
  e |= pthread_rwlockattr_init(&x.wa) | pthread_rwlock_init(&x.w, &x.wa) | pthread_barrierattr_init(&x.ba) | pthread_barrier_init(&x.b, &x.ba, 4) | sem_init(&x.s, 0, 0) | pthread_attr_init(&x.a) | pthread_attr_setstacksize(&x.a, PTHREAD_STACK_MIN);
  for (long i = 0; i < 4; i++) e |= pthread_create(&t[i], &x.a, work, (void *)i);
  pthread_mutex_lock(&fixed); while (turns < 4) pthread_cond_wait(&x.c, &fixed); struct timespec soon; clock_gettime(CLOCK_MONOTONIC, &soon); int timed = pthread_cond_timedwait(&x.c, &fixed, &soon); pthread_mutex_unlock(&fixed);
  for (int i = 0; i < 4; i++) { void *r; sem_wait(&x.s); e |= pthread_join(t[i], &r); sum += (long)r; }
  e |= pthread_rwlock_rdlock(&x.w) | pthread_rwlock_tryrdlock(&x.w) | pthread_rwlock_unlock(&x.w) | pthread_rwlock_unlock(&x.w) | pthread_rwlock_destroy(&x.w) | pthread_mutex_destroy(&x.m) | pthread_cond_destroy(&x.c) | pthread_attr_destroy(&x.a) | sem_destroy(&x.s);
  char *g[] = {x.g0, x.g1, x.g2, x.g3, x.g4, x.g5, x.g6, x.g7, x.g8, x.g9, x.g10}; int bad = 0; for (int i = 0; i < 11; i++) for (int k = 0; k < 16; k++) bad += g[i][k] != 7;
  sprintf(b, "%d %d %ld %d %d %d %d", e, counter, sum, bad, timed == ETIMEDOUT, freed, own);
  return pthread_equal(pthread_self(), pthread_self()) != 0;
}''', "1 0 4000 618 0 1 4 3"),
    Works("C11-threads", r'''#include <stdio.h>
#include <threads.h>
static struct { mtx_t m; char g[32]; cnd_t c; char h[32]; } x; static int n; static thread_local int mine; static once_flag once = ONCE_FLAG_INIT; static tss_t key;
static void make(void) { tss_create(&key, 0); }
static int work(void *p) { call_once(&once, make); tss_set(key, p); mine += 5; mtx_lock(&x.m); n++; cnd_signal(&x.c); mtx_unlock(&x.m); return mine + (tss_get(key) == p); }
int f(char *b, const char *d) {
  thrd_t t; int r = 0; mtx_init(&x.m, mtx_plain); cnd_init(&x.c);
  if (thrd_create(&t, work, (void *)d) != thrd_success) return -1;
  mtx_lock(&x.m); while (!n) cnd_wait(&x.c, &x.m); mtx_unlock(&x.m); thrd_join(t, &r); thrd_sleep(&(struct timespec){0, 1000}, 0);
  int bad = 0; for (int i = 0; i < 32; i++) bad += x.g[i] || x.h[i];
  sprintf(b, "%d %d %d", r, bad, thrd_equal(thrd_current(), thrd_current()) != 0); mtx_destroy(&x.m); cnd_destroy(&x.c);
  return 0;
}''', "0 6 0 1"),
    Works("setjmp", r'''#include <setjmp.h>
#include <stdio.h>
static jmp_buf place; static int depth;
__attribute__((noinline)) static void deeper(int n) { if (n == 0) longjmp(place, depth + 3); deeper(n - 1); depth = -99; }
int f(char *b, const char *d) {
  (void)d; struct { jmp_buf j; char guard[32]; } s; for (int i = 0; i < 32; i++) s.guard[i] = 7;
  volatile int before = 5; int r = setjmp(place);
  if (r == 0) { before = 6; deeper(9); return -1; }
  int again = _setjmp(s.j); if (again < 3) longjmp(s.j, again + 1);
  int bad = 0; for (int i = 0; i < 32; i++) bad += s.guard[i] != 7;
  if (!setjmp(place)) longjmp(place, 0); else before += 10;
  return sprintf(b, "%d %d %d %d", r, before, again, bad);
}''', "8 3 16 3 0"),
    Works("wide", r'''#define _GNU_SOURCE
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>
static int say(wchar_t *o, size_t n, const wchar_t *t, ...) { va_list a; va_start(a, t); int r = vswprintf(o, n, t, a); va_end(a); return r; }
static int scan(const wchar_t *o, const wchar_t *t, ...) { va_list a; va_start(a, t); int r = vswscanf(o, t, a); va_end(a); return r; }
int f(char *b, const char *d) {
  (void)d; wchar_t w[64], *end; int i = 0; double g = 0; char mb[64]; mbstate_t st; memset(&st, 0, sizeof st);
  int n = say(w, 64, L"%d %ls %g %c", -7, L"wide", 2.5, 'x'); int got = scan(L"42 1.5", L"%d %lf", &i, &g);
  wcstombs(mb, w, 64); wchar_t one; size_t used = mbrtowc(&one, "A", 1, &st); locale_t l = newlocale(LC_ALL_MASK, "C", 0), old = uselocale(l);
  long v = wcstol(L"123rest", &end, 10); double wd = wcstod(L"0.25", 0); uselocale(old); freelocale(l);
  sprintf(b, "%d %s %d %d %g | %zu %d %ld %ls %g | %zu %d %d %d %d | %d %d", n, mb, got, i, g, used, one, v, end, wd, wcslen(w), wcscmp(L"b", L"a") > 0, iswalpha(L'q') != 0, iswdigit(L'q'), towupper(L'q'), l != 0, wcschr(w, L'w') == w + 3);
  wchar_t wf[8]; swprintf(wf, 8, L"%03d", 7); wmemset(w, L'z', 3);
  return wf[2] == L'7' && w[2] == L'z' && wcscasecmp(L"AbC", L"aBc") == 0 && strtod_l("1.5", 0, newlocale(LC_ALL_MASK, "C", 0)) == 1.5;
}''', "1 13 -7 wide 2.5 x 2 42 1.5 | 1 65 123 rest 0.25 | 13 1 1 0 81 | 1 1"),
    Works("sockets", r'''#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>
int f(char *b, const char *d) {
  (void)d; int s[2], one = 1; if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s)) return -1;
  send(s[0], "hello", 5, MSG_NOSIGNAL); int pending = 0; ioctl(s[1], FIONREAD, &pending); struct pollfd p = {s[1], POLLIN, 0}; int ready = poll(&p, 1, 1000); char in[16] = {0}; recv(s[1], in, 15, 0);
  int l = socket(AF_INET, SOCK_STREAM, 0); struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}; socklen_t n = sizeof a;
  setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one); int e = bind(l, (void *)&a, sizeof a) | listen(l, 4) | getsockname(l, (void *)&a, &n);
  int c = socket(AF_INET, SOCK_STREAM, 0); e |= connect(c, (void *)&a, sizeof a); int k = accept(l, NULL, NULL); write(c, "net", 3); fd_set r; FD_ZERO(&r); FD_SET(k, &r); int sel = select(k + 1, &r, 0, 0, &(struct timeval){1, 0}); char net[8] = {0}; read(k, net, 7);
  union { char space[CMSG_SPACE(sizeof(int))]; long align; } u; memset(&u, 0x5a, sizeof u); char body = 'm'; struct iovec v = {&body, 1}; struct msghdr m; memset(&m, 0x5a, sizeof m);
  m.msg_name = 0; m.msg_namelen = 0; m.msg_iov = &v; m.msg_iovlen = 1; m.msg_control = u.space; m.msg_controllen = sizeof u.space; m.msg_flags = 0;
  struct cmsghdr *h = CMSG_FIRSTHDR(&m); h->cmsg_len = CMSG_LEN(sizeof(int)); h->cmsg_level = SOL_SOCKET; h->cmsg_type = SCM_RIGHTS; memcpy(CMSG_DATA(h), &l, sizeof l);
  long sent = sendmsg(s[0], &m, 0); body = 0; memset(&u, 0x5a, sizeof u); long got = recvmsg(s[1], &m, 0); h = CMSG_FIRSTHDR(&m); int passed = -1; if (h && h->cmsg_type == SCM_RIGHTS) memcpy(&passed, CMSG_DATA(h), sizeof passed);
  struct addrinfo hint = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *res = 0; int gai = getaddrinfo("127.0.0.1", "80", &hint, &res); char host[NI_MAXHOST]; int port = res ? ntohs(((struct sockaddr_in *)res->ai_addr)->sin_port) : 0;
  if (res) getnameinfo(res->ai_addr, res->ai_addrlen, host, sizeof host, 0, 0, NI_NUMERICHOST), freeaddrinfo(res);
  struct in6_addr six; char text[INET6_ADDRSTRLEN]; inet_pton(AF_INET6, "::1", &six); inet_ntop(AF_INET6, &six, text, sizeof text);
  sprintf(b, "%d %d %s | %d %d %s | %ld %ld %c %d | %d %s %d %s %d %s", pending, ready, in, e, sel, net, sent, got, body, fcntl(passed, F_GETFD) >= 0, gai, host, port, text, memcmp(&six, &in6addr_loopback, 16), inet_ntoa(a.sin_addr));
  close(s[0]); close(s[1]); close(c); close(k); close(l); close(passed);
  return 0;
}''', "0 5 1 hello | 0 1 net | 1 1 m 1 | 0 127.0.0.1 80 ::1 0 127.0.0.1"),
    Works("time-and-process", r'''#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <iconv.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
static int by_name(const void *a, const void *b, void *c) { return strcmp(a, b) * *(int *)c; }
int f(char *b, const char *d) {
  (void)d; time_t t = 1700000000; struct tm m, k; char out[64], *save, list[] = "a,b;c"; gmtime_r(&t, &m); memset(&k, 0, sizeof k); strptime("2023-11-14 22:13:20", "%Y-%m-%d %H:%M:%S", &k);
  struct timespec a, z; clock_gettime(CLOCK_MONOTONIC, &a); nanosleep(&(struct timespec){0, 2000000}, 0); clock_gettime(CLOCK_MONOTONIC, &z); long ns = (z.tv_sec - a.tv_sec) * 1000000000 + z.tv_nsec - a.tv_nsec;
  struct { struct rusage r; char guard[32]; } u; memset(&u, 7, sizeof u); getrusage(RUSAGE_SELF, &u.r); int bad = 0; for (int i = 0; i < 32; i++) bad += u.guard[i] != 7;
  struct utsname name; uname(&name); struct rlimit lim; unsigned char rnd[32] = {0}; int some = 0; getentropy(rnd, 16); getrandom(rnd + 16, 16, 0); for (int i = 0; i < 32; i++) some |= rnd[i];
  setenv("VIS_PROBE", "yes", 1); int n = strerror_r(ENOENT, out, sizeof out); int bsearching = -1; char words[3][4] = {"b", "c", "a"}; qsort_r(words, 3, 4, by_name, &bsearching);
  void *self = dlopen(NULL, RTLD_NOW); void *mem = 0; int align = posix_memalign(&mem, 256, 100) || ((unsigned long)mem & 255); iconv_t ic = iconv_open("UTF-8", "ASCII"); char latin[] = "e", *in = latin, utf[8] = {0}, *to = utf; size_t left = 1, room = 8; iconv(ic, &in, &left, &to, &room); iconv_close(ic);
  char *tok = strtok_r(list, ",;", &save); char *tok2 = strtok_r(NULL, ",;", &save), *sep = (char[]){"p:q"}; char *made = 0; asprintf(&made, "%d-%s", 12, strsep(&sep, ":"));
  sprintf(b, "%d %ld %d | %d %d | %s %d %d %d | %s %d %s %s%s%s | %d %d %s | %s %s %s %s %d %d %d", m.tm_hour, (long)timegm(&k) - t, ns >= 2000000, bad, u.r.ru_maxrss > 0, name.sysname, getrlimit(RLIMIT_NOFILE, &lim), some != 0, sysconf(_SC_PAGESIZE) == getpagesize(), getenv("VIS_PROBE"), n, out, words[0], words[1], words[2],
    self != 0 || dlerror() != 0, align, utf, tok, tok2, sep, made, strcasecmp("AbC", "aBc"), ffs(8), (int)strnlen("abcdef", 4));
  free(mem); free(made); return getpid() > 0;
}''', "1 22 0 1 | 0 1 | Linux 0 1 1 | yes 0 No such file or directory cba | 1 0 e | a b q 12-p 0 4 4"),
    Works("atexit", r'''#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void last(void) { printf(" last"); fflush(stdout); }
static void first(void) { printf(" first"); fflush(stdout); }
int f(char *b, const char *d) { (void)d; int (*g)(void (*)(void)) = atexit; b[0] = 'x'; return atexit(last) | g(first) | pthread_atfork(0, 0, 0); }''', "0 x first last"),
]  # fmt: skip


MACHINES = [
    pytest.param((arch, libc), id=f"{arch}-{libc}", marks=[] if arch == "x86_64" else [pytest.mark.cross])
    for arch in ("x86_64", "aarch64", "riscv64")
    for libc in ("gnu", "musl")
]
MANIFEST = """
[package]
name = "probe"
version = "1.0"
summary = "A probe"
license = "MIT"
[build]
sources = ["*.c"]
[exports]
headers = ["api.h"]
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> VerifiedPackage:
    """One package with a function for each case."""
    directory = tmp_path_factory.mktemp("platform")
    prototypes = [f"int f{number}(char *b, const char *d);\n" for number in range(len(WORKS))]
    (directory / "api.h").write_text("".join(prototypes))
    for number, case in enumerate(WORKS):
        (directory / f"c{number}.c").write_text(f'#define f f{number}\n{case.source}\n')
    (directory / "visget.toml").write_text(MANIFEST)
    made = build_package(read_project(directory), cache=directory / "cache").package
    assert made.manifest.platform == 2
    return verify_package(made, sign_package(made, KEY), [KEY.public])


@pytest.fixture(scope="module", params=MACHINES)
def answers(
    request: pytest.FixtureRequest, built: VerifiedPackage, tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """What a program says that calls each function, on one machine."""
    arch, libc = request.param
    directory = tmp_path_factory.mktemp(f"{arch}-{libc}")
    prototypes = "".join(f"int f{number}(char *, const char *);\n" for number in range(len(WORKS)))
    calls = "".join(
        f'memset(b, 0, 4096); r = f{number}(b, "."); printf("%s%d %s", {number} ? "\\n" : "", r, b); fflush(stdout);\n'
        for number in range(len(WORKS))
    )
    driver = f"#include <stdio.h>\n#include <string.h>\n{prototypes}"
    driver += f"int main(void) {{ static char b[4096]; int r;\n{calls}return 0; }}\n"
    done = run_on(driver, compile_package(built, baseline(arch, libc)).object, arch, libc, directory)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")


def run_on(driver: str, native: bytes, arch: str, libc: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Link the object with the C program `driver` and that C library, and run it; skip where that is impossible."""
    run = []
    if arch != "x86_64":
        emulator = shutil.which(f"qemu-{arch}") or shutil.which(f"qemu-{arch}-static")
        system = Path(f"/usr/{arch}-linux-gnu")
        if emulator is None or not (system.exists() or libc == "musl"):
            pytest.skip(f"no qemu-{arch}, or no glibc for it")
        run = [emulator, "-L", str(system)] if libc == "gnu" else [emulator]
    (directory / "library.o").write_bytes(native)
    (directory / "main.c").write_text(driver)
    target = f"{arch}-linux-{libc}" + (".2.34" if libc == "gnu" else "")
    link = [str(zig()), "cc", "-target", target, "-O1", "-g0", "-w", "main.c", "library.o", "-o", "program", "-lm"]
    subprocess.run(link, check=True, timeout=300, cwd=directory)
    return subprocess.run([*run, "./program"], capture_output=True, text=True, check=False, timeout=120, cwd=directory)


@pytest.mark.parametrize("number", [pytest.param(number, id=case.name) for number, case in enumerate(WORKS)])
def test_the_same_answer_everywhere(number: int, answers: list[str]) -> None:
    assert answers[number] == WORKS[number].wants
