// Where stderr goes, for a test of what is printed.
#pragma once

namespace troupe::test {

// While one lives, what this process writes to stderr goes to `to`. Reports of sanitizers alone go
// where they would have gone. For one at a time.
class TakenStderr {
 public:
  explicit TakenStderr(int to);
  ~TakenStderr();
  TakenStderr(const TakenStderr&) = delete;
  TakenStderr& operator=(const TakenStderr&) = delete;

  int before() const { return before_; }  // where it went

 private:
  int before_;
};

}  // namespace troupe::test
