// What Print says.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace troupe::test {

// While one lives, what this process writes to stderr goes to it. For one at a time, and while
// nothing ends the process: reports of sanitizers alone go where they would have gone.
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
  int file_, before_;
};

}  // namespace troupe::test
