// Every op, given what nobody means: each case is refused or fails with a Status that names a node
// and a line of the program, or computes values of the inferred types and shapes, twice the same.
// None brings the process down, takes 10 s, or a block beyond the step's memory.
//
// A finding names its op and seed, which are the case:
//   TROUPE_OPS=Pad TROUPE_SEED=17 TROUPE_CASES=1 build/bin/troupe_test_hostile
#include <doctest/doctest.h>

#include <cstdlib>
#include <sstream>

#include "tests/contains.hpp"
#include "tests/hostile/bombard.hpp"

namespace troupe::test {
namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Those that graphs of programs and their gradients may hold.
bool in_graphs(const OpInfo& op) {
  const Role role = op.def.role;
  return role <= Role::external || role == Role::switch_ || role == Role::merge ||
         (role >= Role::enter && role <= Role::control_trigger) || role >= Role::call;
}

std::vector<const OpInfo*> chosen(const OpTable& table) {
  const char* names = std::getenv("TROUPE_OPS");
  std::vector<const OpInfo*> ops;
  if (!names || !*names) {
    for (const OpInfo* op : table.ops.all())
      if (in_graphs(*op)) ops.push_back(op);
    return ops;
  }
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    const OpInfo* op = table.ops.find(name);
    REQUIRE_MESSAGE(op != nullptr, name);
    ops.push_back(op);
  }
  return ops;
}

}  // namespace

TEST_CASE("ops refuse hostile inputs by node and line, or compute what was inferred") {
  const OpTable& table = ops::builtin();
  Bombardment how{.first = number_from("TROUPE_SEED", 1), .cases = number_from("TROUPE_CASES", 8)};
  how.show = how.cases == 1 && std::getenv("TROUPE_OPS") != nullptr;
  const auto ops = chosen(table);
  const Bombarded done = bombard(table, ops, how);
  for (const HostileFinding& f : done.findings)
    FAIL_CHECK(f.op << ", seed " << f.seed << ": " << f.what << "\n  again: TROUPE_OPS=" << f.op
                    << " TROUPE_SEED=" << f.seed << " TROUPE_CASES=1 troupe_test_hostile");
  std::string never;
  for (const std::string& op : done.never_computed) never += " " + op;
  MESSAGE("hostile cases: " << done.cases << " of " << ops.size() << " ops from seed " << how.first
                            << ": refused " << done.ends[0] << ", not fed " << done.ends[1]
                            << ", failed " << done.ends[2] << ", asked " << done.ends[3]
                            << ", computed " << done.ends[4] << "; never computed:" << never);
}

}  // namespace troupe::test
