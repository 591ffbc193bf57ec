"""The larger parts of libc++ on three machines: streams, locales, waiting, time, chance, regular expressions."""

from __future__ import annotations

from pathlib import Path

import pytest
from cxxkit import build_cxx, library_of, run_loading

from visget.format.package import Package

HEADER = """
int format(char *out, int size);
int parse(const char *text, double *real, long *whole);
int say(const char *what);
int locales(void);
int waits(void);
int later(void);
int slept(int milliseconds);
int chance(void);
int match(const char *text);
int files(const char *directory);
"""
SOURCE = r"""
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iomanip>
#include <iostream>
#include <locale>
#include <random>
#include <regex>
#include <semaphore>
#include <sstream>
#include <string>
#include <thread>

int format(char *out, int size) {
  std::ostringstream to;
  to << std::hex << std::showbase << 255 << ' ' << std::fixed << std::setprecision(3) << 3.14159 << ' '
     << std::boolalpha << true << ' ' << std::dec << std::setw(6) << std::setfill('*') << -42 << ' ' << 0.1L << ' '
     << std::to_string(2.5L) << ' ' << std::stold("0.25") << ' ' << std::put_money(1234.0L) << ' ' << 1e30L;
  std::string text = to.str();
  if (int(text.size()) >= size) return -1;
  memcpy(out, text.c_str(), text.size() + 1);
  return int(text.size());
}
int parse(const char *text, double *real, long *whole) {
  std::istringstream from(text);
  long double wide;
  from >> *real >> *whole >> wide;
  return from.fail() ? -1 : int(wide * 2);
}
int say(const char *what) {
  std::cout << what << ' ' << 42 << '\n';
  std::cerr << "and so on\n";
  return std::cout.good();
}
int locales() {
  try { std::locale none("no_such_language"); return -1; } catch (const std::runtime_error &) {}
  std::wostringstream wide;
  wide << L"w" << 1.5;
  return (wide.str() == L"w1.5") + 2 * (std::locale().name() == "C")
       + 4 * (std::use_facet<std::ctype<char>>(std::locale()).toupper('a') == 'A');
}
int waits() {
  std::atomic<int> word{0};
  std::counting_semaphore<4> room{0};
  std::mutex lock;
  std::condition_variable changed;
  bool ready = false;
  std::thread other([&] {
    word.store(5);
    word.notify_all();
    room.release(2);
    { std::lock_guard guard(lock); ready = true; }
    changed.notify_one();
  });
  word.wait(0);
  room.acquire();
  bool second = room.try_acquire_for(std::chrono::seconds(20));
  bool third = room.try_acquire_for(std::chrono::milliseconds(5));
  std::unique_lock guard(lock);
  changed.wait(guard, [&] { return ready; });
  guard.unlock();
  other.join();
  return word + 10 * second + 100 * third;
}
int later() {
  auto fails = std::async(std::launch::async, [](int x) -> int { throw std::out_of_range(std::to_string(x)); }, 7);
  try { return fails.get(); } catch (const std::out_of_range &error) { return error.what()[0]; }
}
int slept(int milliseconds) {
  auto before = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  return std::chrono::steady_clock::now() - before >= std::chrono::milliseconds(milliseconds);
}
int chance() {
  std::random_device device;
  std::mt19937 fixed(1);
  fixed.discard(9999);
  return (device() != device() || device() != device()) + 2 * (fixed() != 0);
}
int match(const char *text) {
  std::cmatch found;
  return std::regex_match(text, found, std::regex("([a-z]+)=([0-9]+)")) ? std::stoi(found[2]) : -1;
}
int files(const char *directory) {
  namespace fs = std::filesystem;
  fs::path below = fs::path(directory) / "a" / "b";
  fs::create_directories(below);
  { std::ofstream to(below / "file.txt"); to << "hello\n" << 12 << '\n'; }
  std::ifstream from(below / "file.txt");
  std::string word; int number = 0, entries = 0;
  from >> word >> number;
  for (auto &entry : fs::recursive_directory_iterator(directory)) entries += entry.is_regular_file() ? 10 : 1;
  std::error_code error;
  fs::file_size(below / "missing", error);
  return number + int(fs::file_size(below / "file.txt")) * 100 + entries * 10000 + (error ? 1000000 : 0);
}
"""
DRIVER = r"""
#include <dlfcn.h>
#include <stdio.h>
#define CALL(name, type) ((type)dlsym(library, #name))
#define NOTHING int (*)(void)
#define TEXT int (*)(const char *)
int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  char text[200];
  double real = 0;
  long whole = 0;
  if (!library) { puts(dlerror()); return 1; }
  printf("%d ", CALL(format, int (*)(char *, int))(text, sizeof text));
  printf("%.90s\n", text);
  printf("%d ", CALL(parse, int (*)(const char *, double *, long *))("2.75 -31 1.5", &real, &whole));
  printf("%g %ld\n", real, whole);
  printf("%d\n", CALL(locales, NOTHING)());
  printf("%d\n", CALL(waits, NOTHING)());
  printf("%d\n", CALL(later, NOTHING)());
  printf("%d\n", CALL(slept, int (*)(int))(20));
  printf("%d\n", CALL(chance, NOTHING)());
  printf("%d %d\n", CALL(match, TEXT)("key=42"), CALL(match, TEXT)("key:42"));
  printf("%d\n", CALL(files, TEXT)(argv[2]));
  fflush(stdout);
  printf("%d\n", CALL(say, TEXT)("streams"));
  return 0;
}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return build_cxx(tmp_path_factory.mktemp("streams"), HEADER, SOURCE, 'standard = "gnu++20"').package


FOREIGN = [pytest.mark.cross, pytest.mark.long]


@pytest.mark.parametrize(
    "arch",
    [
        pytest.param("x86_64", marks=pytest.mark.long),
        pytest.param("aarch64", marks=FOREIGN),
        pytest.param("riscv64", marks=FOREIGN),
    ],
)
def test_the_library_works(arch: str, made: Package, tmp_path: Path) -> None:
    library = library_of(made, arch, tmp_path)
    (tmp_path / "below").mkdir()
    done = run_loading(DRIVER, library, arch, str(tmp_path / "below"))
    formatted = f"0xff 3.142 true ***-42 0.100 2.500000 0.250 1234 {1e30:.3f}"
    expected = [f"{len(formatted)} {formatted[:90]}", "3 2.75 -31", "7", "15", "55", "1", "3", "42 -1"]
    assert done.stdout.splitlines()[:8] == expected
    assert done.stdout.splitlines()[8:] == ["1120912", "streams 42", "1"]
    assert (done.returncode, done.stderr) == (0, "and so on\n")
