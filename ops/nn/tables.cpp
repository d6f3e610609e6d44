#include "ops/nn/tables.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/number.hpp"
#include "graph/slicing.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/nn/shapes.hpp"

namespace troupe::nn {

namespace {

// The rows of part p, in their order: from `first`, each `step` rows on.
struct PartRows {
  std::int64_t first, step, count;
};

PartRows rows_of_part(std::int64_t rows, std::int64_t parts, Partition how, std::int64_t p) {
  const std::int64_t each = rows / parts, longer = rows % parts,
                     count = each + (p < longer ? 1 : 0);
  return how == Partition::mod ? PartRows{p, parts, count}
                               : PartRows{p * each + std::min(p, longer), 1, count};
}

Output numbers(GraphBuilder& g, const PartRows& rows, const Site& site) {
  const auto i = [&](std::int64_t x) { return constant<std::int64_t>(g, x, site); };
  return range(i(rows.first), i(rows.first + rows.count * rows.step), i(rows.step), site);
}

Shape with_rows(const Shape& shape, std::int64_t rows) {
  Shape out = shape;
  out.set_dim(0, rows);
  return out;
}

void check_partition(std::string_view name, const Shape& shape, const PartitionOptions& options,
                     const Site& site) {
  if (shape.rank() < 1)
    throw Error(invalid_argument(fmt::format("partitioned variable {}: a scalar has no rows", name))
                    .at(site));
  if (options.shards >= 1 && (options.shards == 1 || options.shards <= shape.dim(0))) return;
  throw Error(invalid_argument(fmt::format("partitioned variable {}: {} rows in {} parts", name,
                                           shape.dim(0), options.shards))
                  .at(site));
}

std::string name_of_part(std::string_view table, Partition how, std::int64_t p) {
  return fmt::format("{}/{}_{}", table, how == Partition::mod ? "part" : "block", p);
}

// What a variable of that name is the part of, if any.
struct PartOf {
  std::string_view table;
  std::int64_t number;
};
std::optional<PartOf> part_of(std::string_view name, Partition how) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  const std::string_view all = name.substr(0, digits);
  std::string kind = name_of_part("", how, 0);
  kind.pop_back();  // the number
  const auto number = parse_number<std::int64_t>(name.substr(digits));
  // A number that has no next one is no part's.
  if (!number || *number == std::numeric_limits<std::int64_t>::max() || !all.ends_with(kind))
    return std::nullopt;
  return PartOf{all.substr(0, all.size() - kind.size()), *number};
}

}  // namespace

std::string kept_otherwise(std::string_view name, const HasVariable& graph_has,
                           const HasVariable& file_has) {
  std::vector<std::string> others;
  const bool missing = !file_has(std::string(name));
  for (const auto& [how, other] :
       {std::pair{Partition::mod, Partition::div}, std::pair{Partition::div, Partition::mod}})
    if (const auto part = part_of(name, how)) {
      // The file has more parts, or fewer.
      const std::string next = name_of_part(part->table, how, part->number + 1);
      if (!graph_has(next)) others.push_back(next);
      if (missing)
        others.insert(others.end(), {name_of_part(part->table, how, 0), std::string(part->table),
                                     name_of_part(part->table, other, 0)});
    }
  if (missing && others.empty())
    others = {name_of_part(name, Partition::mod, 0), name_of_part(name, Partition::div, 0)};
  const auto found = std::find_if(others.begin(), others.end(), file_has);
  return found == others.end() ? "" : *found;
}

PartitionedVariable partitioned_variable(std::string_view name, const Shape& shape,
                                         const MakePart& make, const PartitionOptions& options,
                                         Site site) {
  check_partition(name, shape, options, site);
  std::vector<Variable> parts;
  for (std::int64_t p = 0; p < options.shards; ++p) {
    const PartRows rows = rows_of_part(shape.dim(0), options.shards, options.how, p);
    const std::string own = name_of_part(name, options.how, p);
    parts.push_back(
        make(options.shards == 1 ? name : std::string_view(own), with_rows(shape, rows.count)));
  }
  return PartitionedVariable(std::move(parts), shape, options.how);
}

PartitionedVariable partitioned_variable(GraphBuilder& g, std::string_view name, Output initial,
                                         const PartitionOptions& options, Site site) {
  check_given("partitioned_variable: the initial value", initial, site);
  if (!initial.shape().fully_known())
    throw Error(invalid_argument(fmt::format("partitioned variable {}: the shape of its initial "
                                             "value must be known, not {}",
                                             name, initial.shape().text()))
                    .at(site));
  const Shape shape = initial.shape().shape();
  std::int64_t p = 0;
  return partitioned_variable(
      name, shape,
      [&](std::string_view own, const Shape&) {
        const PartRows rows = rows_of_part(shape.dim(0), options.shards, options.how, p++);
        const Output part =
            options.shards == 1 ? initial : gather(initial, numbers(g, rows, site), {}, site);
        return variable(g, own, part, {}, site);
      },
      options, site);
}

Output PartitionedVariable::value(Site site) const {
  if (parts_.empty()) throw Error(invalid_argument("an empty PartitionedVariable").at(site));
  if (parts_.size() == 1) return parts_.front().value();
  std::vector<Output> values;
  for (const Variable& part : parts_) values.push_back(part.value());
  if (how_ == Partition::div) return concat(values, {}, site);
  std::vector<Output> places;
  for (std::size_t p = 0; p < parts_.size(); ++p)
    places.push_back(numbers(
        values.front().graph(),
        rows_of_part(shape_.dim(0), std::int64_t(parts_.size()), how_, std::int64_t(p)), site));
  return reshape(dynamic_stitch(places, values, site), shape_.dims(), site);
}

Output PartitionedVariable::rows(Output ids, Site site) const {
  if (parts_.empty()) throw Error(invalid_argument("an empty PartitionedVariable").at(site));
  check_given("the ids of rows", ids, site);
  if (parts_.size() == 1) return gather(parts_.front(), ids, {}, site);
  const auto n = std::int64_t(parts_.size());
  const auto places =
      partition_rows(ids, shape_.dim(0), n, {.how = how_ == Partition::mod ? "mod" : "div"}, site);
  const Output part = reshape(places.part, {-1}, site), row = reshape(places.row, {-1}, site);
  const Output all = range(constant<std::int64_t>(ids.graph(), 0, site), size(part, {}, site),
                           constant<std::int64_t>(ids.graph(), 1, site), site);
  const std::vector<Output> asked = dynamic_partition(row, part, n, site),
                            at = dynamic_partition(all, part, n, site);
  std::vector<Output> found;
  for (std::size_t p = 0; p < parts_.size(); ++p)
    found.push_back(gather(parts_[p], asked[p], {}, site));
  const auto& dims = shape_.dims();
  return reshape_beside(dynamic_stitch(at, found, site), ids, {dims.begin() + 1, dims.end()}, site);
}

void check_given(std::string_view what, const Table& table, const Site& site) {
  if (table.empty()) throw Error(invalid_argument(std::string(what) + " is empty").at(site));
}

Output Table::rows(Output ids, Site site) const {
  return whole_.empty() ? parts_.rows(ids, std::move(site))
                        : gather(whole_, ids, {}, std::move(site));
}

}  // namespace troupe::nn
