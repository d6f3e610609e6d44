#include "ops/nn/embedding.hpp"

#include "ops/api/generated.hpp"
#include "ops/api/node.hpp"
#include "ops/nn/initial.hpp"

namespace troupe::nn {

Embedding::Embedding(Module& parent, std::string_view name, std::int64_t rows, std::int64_t size,
                     const Options& options, Site site)
    : Module(parent, name) {
  check_sizes("Embedding", {rows, size}, site);
  auto inside = scope().enter();
  const Output first = random_standard_normal(
      graph(), {rows, size}, {.dtype = options.dtype, .stddev = options.stddev}, site);
  table_ = parameter("W", first, site);
}

Output Embedding::operator()(Output ids, Site site) const {
  check_given("Embedding: `ids`", ids, site);
  auto inside = scope().enter();
  return gather(table_, ids, {}, std::move(site));
}

}  // namespace troupe::nn
