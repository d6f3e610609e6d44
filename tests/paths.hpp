// Where this build and its sources are, for tests that run its programs.
#pragma once

#include <string>

std::string build_dir();
std::string source_dir();
