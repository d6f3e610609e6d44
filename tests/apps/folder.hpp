// A folder of a test's own.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

// Empty at first, and gone with it.
struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/troupe-test-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};
