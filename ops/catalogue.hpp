// What there is to say about each op, for people and programs that look for one: `troupe ops`,
// docs/ops.md and the checks of both. Everything here is read off the definitions; only the names
// that TensorFlow and its paper use are told in a table of their own (catalogue_names.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "ops/op.hpp"

namespace troupe::ops {

// Whether gradients flow through an op. `none`: by its nature.
enum class Flow : std::uint8_t { yes, no, none };
std::string_view flow_name(Flow flow);  // "yes", "no", "none"

// One op. Pointers live as long as the table.
struct CatalogueEntry {
  const OpInfo* op = nullptr;
  std::string file;          // that defines it, "ops/kernels/math/unary.cpp"; empty: unknown
  std::string group;         // the folder of that file, "math"; "other" without one
  bool internal = false;     // made by gradients and the runtime, not by programs
  Flow gradient = Flow::no;  // first order
  Flow second = Flow::no;    // gradients of that gradient
  std::string reason;        // why there is none
  std::vector<std::string> devices;  // types with a kernel: "CPU", "FAKE"
  std::string tensorflow;            // what it is called there, where that differs; else empty
  std::string paper;                 // the same of the paper's Table 1

  std::string dtypes() const;  // of attribute T, as the definition lists them; empty: it has no T
};

// Names that begin with '_' or end in Grad or When: of gradients, of rules, of writes in branches.
bool is_internal_op(std::string_view name);

// All ops of the table, by name. Takes some milliseconds: gradients are tried out.
std::vector<CatalogueEntry> catalogue(const OpTable& table);

// The entry that somebody who writes `name` means: an op's name, or that of TensorFlow or the
// paper. not_found with near names.
Expected<const CatalogueEntry*> find_op(const std::vector<CatalogueEntry>& entries,
                                        std::string_view name);

// Something that a public op should have and lacks.
struct CatalogueFinding {
  std::string op, missing;
};
// What the definitions alone show: documentation, shape function, CPU kernel, gradients. That each
// op has rows in the tables of tests is checked beside those (tests/ops/catalogue_test.cpp).
std::vector<CatalogueFinding> check_catalogue(const std::vector<CatalogueEntry>& entries);

// All that is known of one op, as `troupe ops NAME` prints it.
std::string op_text(const CatalogueEntry& entry);
// All public ops as tables, one for each group: docs/ops.md.
std::string catalogue_markdown(const std::vector<CatalogueEntry>& entries);

}  // namespace troupe::ops
