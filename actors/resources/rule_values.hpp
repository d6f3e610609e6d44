// Update rules by value, for readers of a record that have not compiled the rules of its writes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "core/status.hpp"

namespace troupe {

struct UpdateRule;
class UpdateRules;
class StateReader;
class StateWriter;

// The hash of a rule, equal in every process: of op, attributes, name, combine, replicas and
// targets. Uses UpdateRule::hash if it is set.
std::uint64_t rule_hash(const UpdateRule& rule);

// The rules already written to a stream of records: each is written once. For the writer.
class ToldRules {
 public:
  // Writes the rule's hash, and the first time also its value.
  void write(const UpdateRule& rule, StateWriter& out);

 private:
  std::set<std::uint64_t> told_;
};

// The rules already read from a stream. For the reader.
class KnownRules {
 public:
  // The rules outlive it.
  explicit KnownRules(const UpdateRules& rules) : rules_(rules) {}
  // invalid_argument for what ToldRules does not write, a value that does not match its hash, and a
  // rule that this process cannot apply; failed_precondition for an unknown hash without a value.
  Expected<std::shared_ptr<const UpdateRule>> read(StateReader& in);

 private:
  Expected<std::shared_ptr<const UpdateRule>> make(StateReader& in, std::uint64_t hash) const;

  const UpdateRules& rules_;
  std::map<std::uint64_t, std::shared_ptr<const UpdateRule>> known_;
};

}  // namespace troupe
