// A race on purpose: two threads write one integer. The tsan build must report it.
#include <cstdio>
#include <thread>

int main() {
  int shared = 0;
  auto write = [&shared] {
    for (int i = 0; i < 1000; ++i) ++shared;
  };
  std::thread other(write);
  write();
  other.join();
  std::printf("%d\n", shared);
}
