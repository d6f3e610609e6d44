// Names that are given out once each.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe {

// Each costs the same, however many of the kind there are.
class UniqueNames {
 public:
  // The name as it is wanted, or with _1, _2... behind it.
  std::string take(const std::string& wanted);
  // False when it is taken.
  bool insert(const std::string& name);
  void erase(const std::string& name);

  // Attempts nest; the inner ones end first. Of one that is not kept all names are free again.
  std::size_t begin();
  void end(std::size_t began, bool keep);

 private:
  void set_next(const std::string& name, int number);

  std::unordered_map<std::string, int> next_;  // by name that is taken: the number to try
  // What that was before each change (-1: nothing), while attempts are open.
  std::vector<std::pair<std::string, int>> before_;
  int attempts_ = 0;
};

}  // namespace troupe
