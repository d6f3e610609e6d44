// What Print says.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/actors/support/taken_stderr.hpp"

namespace troupe::test {

// Takes stderr while it lives.
class Heard {
 public:
  Heard();
  ~Heard();
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;

  // By its message, which ends with a blank, what each Print with one that begins with '~' said, in
  // the order of the texts. Other lines go where they would have gone.
  using Lines = std::map<std::string, std::vector<std::string>>;
  Lines lines();

 private:
  int file_;
  TakenStderr taken_;
};

}  // namespace troupe::test
