// Update rules by value: how a record names the rules of its writes to who has not compiled them.
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

// The same for equal rules in every process: of the op, attributes, name, combine, replicas and
// targets. What make_rule() noted, or computed.
std::uint64_t rule_hash(const UpdateRule& rule);

// The rules that a stream of records has told so far: each once. At whoever writes the stream.
class ToldRules {
 public:
  // The rule's hash; the first time also its value.
  void write(const UpdateRule& rule, StateWriter& out);

 private:
  std::set<std::uint64_t> told_;
};

// The same at whoever reads it, with what applies them.
class KnownRules {
 public:
  // The rules outlive it.
  explicit KnownRules(const UpdateRules& rules) : rules_(rules) {}
  // invalid_argument for what ToldRules does not write, a value that does not have its hash, and a
  // rule that this process cannot apply; failed_precondition for a rule that was never told.
  Expected<std::shared_ptr<const UpdateRule>> read(StateReader& in);

 private:
  Expected<std::shared_ptr<const UpdateRule>> make(StateReader& in, std::uint64_t hash) const;

  const UpdateRules& rules_;
  std::map<std::uint64_t, std::shared_ptr<const UpdateRule>> known_;
};

}  // namespace troupe
