#include "ops/api/einsum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/detail/fail_unless.hpp"

namespace troupe {
namespace {

using Labels = std::string;  // of the dimensions of a value; those of "..." are below ' '

bool has(const Labels& labels, char label) { return labels.find(label) != Labels::npos; }

// What is in `of` and satisfies `f`, in its order.
template <class F>
Labels those(const Labels& of, F f) {
  Labels out;
  std::copy_if(of.begin(), of.end(), std::back_inserter(out), f);
  return out;
}

struct Term {
  Output value;
  Labels labels;
};

class Einsum {
 public:
  Einsum(std::string_view equation, const std::vector<Output>& operands, const Site& site)
      : equation_(equation), operands_(operands), site_(site) {}

  Output build() {
    parse();
    complete_shapes();
    Term all = terms_.front();
    for (std::size_t i = 1; i < terms_.size(); ++i) all = product(all, terms_[i], i + 1);
    return transposed(summed(all, out_), out_).value;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(invalid_argument(fmt::format("einsum '{}': {}", equation_, why)).at(site_));
  }

  void parse() {
    std::string text;
    for (const char c : equation_)
      if (c != ' ') text += c;
    const std::size_t arrow = text.find("->");
    std::vector<std::string> inputs{""};
    for (const char c : text.substr(0, arrow)) {
      if (c == ',')
        inputs.emplace_back();
      else
        inputs.back() += c;
    }
    if (inputs.size() != operands_.size())
      refuse(fmt::format("it names {} operands and was given {}", inputs.size(), operands_.size()));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Output& x = operands_[i];
      check_given("einsum: an operand", x, site_);
      if (!x.shape().known_rank()) refuse(fmt::format("the rank of '{}' is not known", x.name()));
      terms_.push_back({x, labels_of(inputs[i], x.shape().rank(), fmt::format("operand {}", i))});
      note_lengths(terms_.back());
    }
    out_ = arrow == std::string::npos ? implied()
                                      : labels_of(text.substr(arrow + 2), -1, "the result");
    for (const char label : out_)
      if (!length_.contains(label))
        refuse(fmt::format("'{}' of the result stands in no operand", name(label)));
  }

  // rank -1: that of the result, whose "..." is what the operands have.
  Labels labels_of(const std::string& text, int rank, const std::string& what) {
    Labels labels;
    const std::size_t dots = text.find("...");
    const std::size_t letters = text.size() - (dots == std::string::npos ? 0 : 3);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (i == dots) {
        const int leading = rank < 0 ? std::max(leading_, 0) : rank - int(letters);
        if (leading < 0) refuse(fmt::format("{} has {} dimensions", what, rank));
        if (leading_ >= 0 && leading != leading_)
          refuse(fmt::format("'...' is {} dimensions of {} and {} of others", leading, what,
                             leading_));
        leading_ = leading;
        for (int k = 0; k < leading; ++k) labels += char(k + 1);
        i += 2;
        continue;
      }
      const char c = text[i];
      if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
        refuse(fmt::format("'{}' is no letter", c));
      if (has(labels, c)) refuse(fmt::format("'{}' stands twice in {}", c, what));
      labels += c;
    }
    if (rank >= 0 && int(labels.size()) != rank)
      refuse(fmt::format("{} has {} dimensions, not {}", what, rank, labels.size()));
    if (labels.size() > 30) refuse(fmt::format("{} has more than 30 dimensions", what));
    return labels;
  }

  static std::string name(char label) { return label < ' ' ? "..." : std::string(1, label); }

  Labels implied() const {
    std::map<char, int> times;
    for (const Term& term : terms_)
      for (const char label : term.labels) ++times[label];
    Labels once;
    for (const auto& [label, n] : times)
      if (n == 1 || label < ' ') once += label;
    return once;
  }

  void note_lengths(const Term& term) {
    for (std::size_t i = 0; i < term.labels.size(); ++i) {
      const std::int64_t length = term.value.shape()[int(i)];
      auto [at, fresh] = length_.try_emplace(term.labels[i], length);
      if (fresh || length == PartialShape::kUnknown || at->second == length) continue;
      if (at->second != PartialShape::kUnknown)
        refuse(fmt::format("'{}' is {} long in one operand and {} in another", name(term.labels[i]),
                           at->second, length));
      at->second = length;
    }
  }

  // What one operand says of a letter holds for all.
  void complete_shapes() {
    for (Term& term : terms_) {
      PartialShape whole = term.value.shape();
      for (std::size_t i = 0; i < term.labels.size(); ++i)
        whole.set_dim(int(i), length_.at(term.labels[i]));
      if (whole != term.value.shape()) term.value = ensure_shape(term.value, whole, site_);
    }
  }

  // Without the dimensions that nobody needs.
  Term summed(const Term& term, const Labels& needed) const {
    SumOptions options;
    for (std::size_t i = 0; i < term.labels.size(); ++i)
      if (!has(needed, term.labels[i])) options.axes.push_back(std::int64_t(i));
    if (options.axes.empty()) return term;
    return {sum(term.value, options, site_),
            those(term.labels, [&](char label) { return has(needed, label); })};
  }

  Term transposed(const Term& term, const Labels& to) const {
    if (term.labels == to) return term;
    TransposeOptions options;
    for (const char label : to) options.perm.push_back(std::int64_t(term.labels.find(label)));
    return {transpose(term.value, options, site_), to};
  }

  // The lengths of these dimensions of a term, those of each group multiplied: i64 [groups].
  Output lengths(const Term& term, const std::vector<Labels>& groups) const {
    std::vector<std::int64_t> known;
    for (const Labels& group : groups) {
      std::int64_t length = 1;
      for (const char label : group) {
        const std::int64_t each = length_.at(label);
        if (each == PartialShape::kUnknown) return computed_lengths(term, groups);
        length *= each;
      }
      known.push_back(length);
    }
    return constant(term.value.graph(), known, site_);
  }
  Output computed_lengths(const Term& term, const std::vector<Labels>& groups) const {
    const Output all = shape(term.value, ShapeOptions{}, site_);
    std::vector<Output> parts;
    for (const Labels& group : groups) {
      Output length = constant(term.value.graph(), std::int64_t{1}, site_);
      for (const char label : group) {
        const auto at = std::int64_t(term.labels.find(label));
        const Output one =
            reshape(slice(all, {at}, {1}, site_), std::vector<std::int64_t>{}, site_);
        length = mul(length, one, site_);
      }
      parts.push_back(length);
    }
    return stack(parts, 0, site_);
  }
  static std::vector<Labels> apart(const Labels& labels) {
    std::vector<Labels> groups;
    for (const char label : labels) groups.emplace_back(1, label);
    return groups;
  }

  // A product stretches a batch of 1, and of several inner dimensions sees how many numbers they
  // are together: what only a run knows of either, it compares.
  void compare(Term& a, Term& b, const Labels& batch, const Labels& inner) const {
    const auto open = [this](char label) { return length_.at(label) == PartialShape::kUnknown; };
    const Labels all_open = those(batch + inner, open);
    if (all_open.empty() || (those(batch, open).empty() && inner.size() == 1)) return;
    const auto lengths_in = [&](const Term& term) {
      std::vector<std::int64_t> places;
      for (const char label : all_open) places.push_back(std::int64_t(term.labels.find(label)));
      const Output from = constant(term.value.graph(), places, site_);
      return gather(shape(term.value, ShapeOptions{}, site_), from, {}, site_);
    };
    const Output alike = all(equal(lengths_in(a), lengths_in(b), site_), {}, site_);
    const std::string message =
        fmt::format("einsum '{}': a letter is not as long in one operand as in another", equation_);
    detail::fail_unless(alike, message, {&a.value, &b.value}, site_);
  }

  // Of terms 0 to `next` - 1, of which the last is b.
  Term product(const Term& left, const Term& right, std::size_t next) const {
    Labels later = out_;
    for (std::size_t i = next; i < terms_.size(); ++i) later += terms_[i].labels;
    Term a = summed(left, later + right.labels), b = summed(right, later + left.labels);
    const auto shared = [&](char label) { return has(b.labels, label); };
    const Labels batch = those(a.labels, [&](char c) { return shared(c) && has(later, c); });
    const Labels inner = those(a.labels, [&](char c) { return shared(c) && !has(later, c); });
    const Labels rows = those(a.labels, [&](char c) { return !shared(c); });
    const Labels columns = those(b.labels, [&](char c) { return !has(a.labels, c); });
    compare(a, b, batch, inner);
    const auto matrix = [&](const Term& term, const Labels& first, const Labels& second) {
      const Term moved = transposed(term, batch + first + second);
      std::vector<Labels> groups = apart(batch);
      groups.push_back(first);
      groups.push_back(second);
      return reshape(moved.value, lengths(moved, groups), site_);
    };
    const Output made = batch_mat_mul(matrix(a, rows, inner), matrix(b, inner, columns), {}, site_);
    const Labels labels = batch + rows + columns;
    const Output length_of_a = lengths(a, apart(batch + rows));
    const Output length_of_b = lengths(b, apart(columns));
    return {
        reshape(made, concat({length_of_a, length_of_b}, ConcatOptions{.axis = 0}, site_), site_),
        labels};
  }

  const std::string equation_;
  const std::vector<Output>& operands_;
  const Site site_;
  std::vector<Term> terms_;
  Labels out_;
  int leading_ = -1;  // dimensions that "..." stands for; -1: not known yet
  std::map<char, std::int64_t> length_;
};

}  // namespace

Output einsum(std::string_view equation, const std::vector<Output>& operands, Site site) {
  if (operands.empty()) throw Error(invalid_argument("einsum of no operands").at(site));
  return Einsum(equation, operands, site).build();
}

}  // namespace troupe
