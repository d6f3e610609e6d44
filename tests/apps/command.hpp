// Runs the `troupe` of this build as a user does.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/contains.hpp"
#include "tests/paths.hpp"

struct Ended {
  int code = -1;
  std::string out, err;

  // What it printed as JSON; discarded when it is none.
  nlohmann::json json() const { return nlohmann::json::parse(out, nullptr, false); }
};

inline std::string troupe_program() { return build_dir() + "/bin/troupe"; }

// A line for the shell, until it ends.
inline Ended shell_command(const std::string& line) {
  char name[] = "/tmp/troupe-test-XXXXXX";
  int descriptor = mkstemp(name);
  if (descriptor < 0) return {};
  close(descriptor);
  std::string command = line + " 2>" + name;
  std::FILE* pipe = popen(command.c_str(), "r");
  Ended ended;
  if (pipe == nullptr) return ended;
  std::array<char, 4096> piece;
  while (std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe))
    ended.out.append(piece.data(), n);
  int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::ostringstream err;
  err << std::ifstream(name).rdbuf();
  ended.err = err.str();
  std::remove(name);
  return ended;
}

// `troupe ARGUMENTS` through the shell, until it ends.
inline Ended troupe_command(const std::string& arguments) {
  return shell_command(troupe_program() + " " + arguments);
}

using troupe::test::contains;
