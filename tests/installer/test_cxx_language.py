"""What C++ itself needs of a run-time library, on three machines: exceptions, types, objects that live long."""

from __future__ import annotations

from pathlib import Path

import pytest
from cxxkit import build_cxx, library_of, run_loading
from programs import SLOTS

from visget.format.package import Package

HEADER = """
int caught(int kind);
const char *events(void);
int nested(void);
int cast(int kind);
int count(const char *words);
int refused(unsigned long size);
int threads(void);
const char *global(void);
void escape(void);
void leave(const char *path);
"""
SOURCE = """
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

static char log_[256];
static const char *path_;
static void note(const char *what) { strcat(strcat(log_, what), " "); }

struct Base { virtual ~Base() {} virtual int code() const { return 1; } };
struct Left : virtual Base { int code() const override { return 2; } };
struct Right : virtual Base {};
struct Both : Left, Right { int code() const override { return 4; } };
struct Guard { ~Guard() { note("unwound"); } };

[[gnu::noinline]] static void raise(int kind) {
  Guard guard;
  switch (kind) {
    case 1: throw 7;
    case 2: throw std::runtime_error("two");
    case 3: throw Both();
    case 4: throw "text";
    case 5: (void)std::vector<int>(3).at(9);
    case 6: throw std::make_pair(1, 2);
  }
}
int caught(int kind) {
  log_[0] = 0;
  try { raise(kind); return 0; }
  catch (int value) { return 100 + value; }
  catch (const std::out_of_range &) { return 200; }
  catch (const std::exception &error) { return 300 + int(strlen(error.what())); }
  catch (const Base &base) { return 400 + base.code(); }
  catch (const char *text) { return text[0]; }
  catch (...) { return 999; }
}
const char *events() { return log_; }
int nested() {
  try {
    try { raise(2); } catch (...) { std::throw_with_nested(std::logic_error("outer")); }
  } catch (const std::exception &outer) {
    try { std::rethrow_if_nested(outer); } catch (const std::runtime_error &inner) { return inner.what()[0]; }
  }
  return 0;
}
int cast(int kind) {
  std::unique_ptr<Base> base(kind == 0 ? new Base : kind == 1 ? static_cast<Base *>(new Left) : new Both);
  return (dynamic_cast<Right *>(base.get()) != nullptr) + 2 * (dynamic_cast<Left *>(base.get()) != nullptr)
       + 4 * (typeid(*base) == typeid(Both));
}
int count(const char *words) {
  std::map<std::string, int> seen;
  for (const char *end; *words; words = *end ? end + 1 : end) {
    end = std::find(words, words + strlen(words), ' ');
    seen[std::string(words, end)]++;
  }
  std::vector<std::pair<int, std::string>> sorted;
  for (auto &[word, times] : seen) sorted.emplace_back(times, word);
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  std::function<int(int)> mix = [&](int x) { return x * sorted[0].first + int(sorted.size()); };
  return mix(10) + std::stoi("1000");
}
int refused(unsigned long size) {
  try { std::string text(size, 'x'); note(text.c_str() + size); return 0; }
  catch (const std::bad_alloc &) { return 1; }
  catch (const std::length_error &) { return 2; }
}

static void append(const char *line) {
  if (FILE *file = path_ ? fopen(path_, "a") : nullptr) { fputs(line, file); fclose(file); }
}
struct Global {
  std::string text = "made";
  ~Global() { append(text == "made" ? "global\\n" : "damaged\\n"); }
};
static Global global_;
const char *global() { return global_.text.c_str(); }
void leave(const char *path) { path_ = path; }

static std::atomic<int> ended;
struct Local { int value = 0; ~Local() { ended++; append("local\\n"); } };
static thread_local Local local;
struct Late { int number; Late() { static int made; number = ++made; } };
int threads() {
  ended = 0;
  std::mutex lock;
  int sum = 0;
  Late *seen[4];
  std::vector<std::thread> all;
  for (int i = 0; i < 4; i++)
    all.emplace_back([&, i] {
      static Late late;
      seen[i] = &late;
      local.value += i + 1;
      std::lock_guard<std::mutex> guard(lock);
      sum += local.value;
    });
  for (auto &one : all) one.join();
  local.value = 50;
  bool once = std::all_of(seen, seen + 4, [&](Late *one) { return one == seen[0] && one->number == 1; });
  return 1000 * once + 100 * ended + sum;
}
void escape() { throw std::runtime_error("nobody catches this"); }
"""
DRIVER = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
static void *open_(const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) puts(dlerror());
  return handle;
}
#define CALL(name, type) ((type)dlsym(library, #name))
static void *library;
static void *idle(void *unused) { CALL(threads, int (*)(void))(); dlclose(library); return NULL; }
int main(int argc, char **argv) {
  library = open_(argv[1]);
  if (!library) return 1;
  if (argc > 2 && !strcmp(argv[2], "escape")) CALL(escape, void (*)(void))();
  if (argc > 2) CALL(leave, void (*)(const char *))(argv[3]);
  if (argc > 2 && !strcmp(argv[2], "thread")) {
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
    pthread_join(thread, NULL);
    printf("gone %d\n", dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL);
    return 0;
  }
  for (int i = 0; i < 7; i++) printf("%d %s\n", CALL(caught, int (*)(int))(i), CALL(events, char *(*)(void))());
  printf("%d\n", CALL(nested, int (*)(void))());
  for (int i = 0; i < 3; i++) printf("%d\n", CALL(cast, int (*)(int))(i));
  printf("%d\n", CALL(count, int (*)(const char *))("b a b c b"));
  printf("%d %d\n", CALL(refused, int (*)(unsigned long))(1UL << 60), CALL(refused, int (*)(unsigned long))(~0UL));
  printf("%s\n", CALL(global, char *(*)(void))());
  printf("%d\n", CALL(threads, int (*)(void))());
  fflush(stdout);
  if (argc > 2 && !strcmp(argv[2], "close")) {
    int status = dlclose(library);
    printf("closed %d, gone %d\n", status, dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD) == NULL);
    library = open_(argv[1]);
    printf("%s\n", CALL(global, char *(*)(void))());
  }
  return 0;
}
"""
EXPECTED = """\
0 unwound 
107 unwound 
303 unwound 
404 unwound 
116 unwound 
200 unwound 
999 unwound 
116
0
2
7
1033
1 2
made
1410
"""  # noqa: W291


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return build_cxx(tmp_path_factory.mktemp("language"), HEADER, SOURCE).package


@pytest.fixture(scope="module", params=SLOTS)
def machine(
    request: pytest.FixtureRequest, made: Package, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    return request.param, library_of(made, request.param, tmp_path_factory.mktemp("installed"))


def test_exceptions_types_and_containers(machine: tuple[str, Path]) -> None:
    arch, library = machine
    done = run_loading(DRIVER, library, arch)
    assert (done.returncode, done.stdout, done.stderr) == (0, EXPECTED, "")


def test_objects_are_destroyed_at_the_end_of_the_program(machine: tuple[str, Path], tmp_path: Path) -> None:
    arch, library = machine
    done = run_loading(DRIVER, library, arch, "end", str(tmp_path / "ends"))
    assert done.returncode == 0
    # Four threads; then the main thread's, and last what lives as long as the library.
    assert (tmp_path / "ends").read_text().split() == ["local"] * 4 + ["local", "global"]


def test_objects_are_destroyed_when_the_library_is_unloaded(machine: tuple[str, Path], tmp_path: Path) -> None:
    arch, library = machine
    done = run_loading(DRIVER, library, arch, "close", str(tmp_path / "ends"))
    assert done.stdout == EXPECTED + "closed 0, gone 1\nmade\n"
    # Nobody told the second copy where to write.
    assert (tmp_path / "ends").read_text().split() == ["local"] * 4 + ["local", "global"]


def test_a_thread_that_unloads_the_library_and_ends(machine: tuple[str, Path], tmp_path: Path) -> None:
    """Its key must be gone with the code that the key would call."""
    arch, library = machine
    done = run_loading(DRIVER, library, arch, "thread", str(tmp_path / "ends"))
    assert (done.returncode, done.stdout) == (0, "gone 1\n")
    assert (tmp_path / "ends").read_text().split() == ["local"] * 4 + ["local", "global"]


def test_an_exception_that_nobody_catches_ends_the_program(machine: tuple[str, Path]) -> None:
    arch, library = machine
    done = run_loading(DRIVER, library, arch, "escape")
    assert done.returncode not in (0, 1)
    assert "terminating due to uncaught exception of type St13runtime_error: nobody catches this" in done.stderr
