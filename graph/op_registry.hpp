// The ops that a program can use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "core/text_map.hpp"
#include "graph/op_def.hpp"

namespace troupe {

// Filled once, then read only; shared by reference and outlives whatever uses it. ops::builtin()
// is the full one; a test can build a small one of its own.
class OpRegistry {
 public:
  // invalid_argument where the definition contradicts itself (its text says what), already_exists
  // for a name taken.
  Status add(OpDef def);
  // nullptr when there is none.
  const OpInfo* find(std::string_view name) const;
  // not_found with near names.
  Expected<const OpInfo*> lookup(std::string_view name) const;
  std::vector<const OpInfo*> all() const;  // by name

 private:
  TextMap<OpInfo> ops_;
};

}  // namespace troupe
