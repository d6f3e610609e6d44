#include "graph/unique_names.hpp"

namespace troupe {

std::string UniqueNames::take(const std::string& wanted) {
  const auto at = next_.find(wanted);
  if (at == next_.end()) {
    set_next(wanted, 1);
    return wanted;
  }
  int number = at->second;
  std::string name;
  do name = wanted + "_" + std::to_string(number++);
  while (next_.contains(name));
  set_next(wanted, number);
  set_next(name, 1);
  return name;
}

bool UniqueNames::insert(const std::string& name) {
  if (next_.contains(name)) return false;
  set_next(name, 1);
  return true;
}

void UniqueNames::erase(const std::string& name) {
  const auto at = next_.find(name);
  if (at == next_.end()) return;
  if (attempts_ > 0) before_.emplace_back(name, at->second);
  next_.erase(at);
}

std::size_t UniqueNames::begin() {
  ++attempts_;
  return before_.size();
}

void UniqueNames::end(std::size_t began, bool keep) {
  --attempts_;
  if (!keep) {
    for (std::size_t i = before_.size(); i-- > began;) {
      const auto& [name, number] = before_[i];
      if (number < 0)
        next_.erase(name);
      else
        next_[name] = number;
    }
    before_.resize(began);
  }
  if (attempts_ == 0) before_.clear();
}

void UniqueNames::set_next(const std::string& name, int number) {
  const auto [at, added] = next_.try_emplace(name, number);
  if (attempts_ > 0) before_.emplace_back(name, added ? -1 : at->second);
  at->second = number;
}

}  // namespace troupe
