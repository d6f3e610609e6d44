#include "ops/data/pipeline.hpp"

#include <algorithm>
#include <iterator>

#include "ops/data/stack.hpp"

namespace troupe {

namespace {

constexpr std::size_t kMostKept = 8;
constexpr std::size_t kMostRemembered = 8;
constexpr std::size_t kMostBytesRemembered = std::size_t{4} << 20;  // of one place
constexpr std::uint64_t kFirstInterval = 1024;
constexpr char kEnded[] = "the dataset has ended";

}  // namespace

Pipeline::Pipeline(StagePtr last, Signature declared)
    : last_(std::move(last)), declared_(std::move(declared)), interval_(kFirstInterval) {}

std::optional<std::uint64_t> Pipeline::elements() const {
  const auto known = end_ ? end_ : last_->count();
  return known == kEndless ? std::nullopt : known;
}

Expected<std::vector<Tensor>> Pipeline::element(std::uint64_t number, Awaited awaited) {
  if (auto end = elements(); end && number >= *end) return dataset_ended(*end);
  if (auto kept = kept_.extract(number); !kept.empty())
    return checked(number, std::move(kept.mapped()));
  TROUPE_TRY(seek(number, awaited));
  if (!pass_) return dataset_ended(*end_);
  TROUPE_TRY(auto next, advance());
  if (!next) return dataset_ended(*end_);
  return checked(number, std::move(*next));
}

// Reads the element at the position and moves past it. Drops the pass at the end, after an error,
// and after an exception for lack of memory, since its position is then unknown.
Expected<std::optional<Example>> Pipeline::advance() {
  std::unique_ptr<Pass> pass = std::move(pass_);
  TROUPE_TRY(auto next, pass->next());
  if (!next) {
    end_ = position_;
    return next;
  }
  pass_ = std::move(pass);
  ++position_;
  return next;
}

Expected<std::vector<Tensor>> Pipeline::checked(std::uint64_t number, Example element) const {
  TROUPE_TRY(std::vector<Tensor> values, values_of(std::move(element)));
  if (fits(declared_, values)) return values;
  return invalid_argument("element " + std::to_string(number) + " is " +
                          signature_text(signature_of(values)) + ", not " +
                          signature_text(declared_));
}

// Moves the pass to that element. If it does not exist, there is no pass and the end is known.
Status Pipeline::seek(std::uint64_t number, Awaited awaited) {
  if (pass_ && position_ == number) {
    remember();
    return ok_status();
  }
  keep_until(number, awaited);
  remember();
  if (end_ ? number >= *end_ : pass_ && position_ == number) return ok_status();
  auto after = remembered_.upper_bound(number);
  const std::uint64_t nearest = after == remembered_.begin() ? 0 : std::prev(after)->first;
  if (!pass_ || position_ > number || position_ < nearest) {
    pass_ = nearest == 0 ? last_->pass(0) : std::prev(after)->second->clone();
    position_ = nearest;
  }
  while (pass_ && position_ < number) {
    // In steps, to remember positions on the way.
    TROUPE_TRY(skip_to(last_->direct() ? number : std::min(number, position_ + interval_)));
    remember();
  }
  return ok_status();
}

// Keeps the awaited elements of a short step, since going back for them would be slow. An error in
// one of them does not concern the requested element: the pass is dropped, and seek() makes a new
// one.
void Pipeline::keep_until(std::uint64_t number, Awaited awaited) {
  if (!pass_ || last_->direct() || position_ > number || number - position_ > kMostKept) return;
  while (position_ < number) {
    std::uint64_t others = 0;
    while (position_ + others < number && !awaited(position_ + others)) ++others;
    if (others > 0) {
      if (!skip_to(position_ + others).ok() || !pass_) return;
      continue;
    }
    const std::uint64_t at = position_;
    auto next = advance();
    if (!next.ok() || !*next) return;
    kept_.insert_or_assign(at, std::move(**next));
  }
  while (kept_.size() > kMostKept) kept_.erase(kept_.begin());
}

Status Pipeline::skip_to(std::uint64_t number) {
  std::unique_ptr<Pass> pass = std::move(pass_);  // as in advance()
  TROUPE_TRY(const std::uint64_t passed, pass->skip(number - position_));
  position_ += passed;
  if (position_ < number)
    end_ = position_;
  else
    pass_ = std::move(pass);
  return ok_status();
}

// Remembers a position every `interval_` elements; if there are too many, drops every second one.
void Pipeline::remember() {
  if (!pass_ || last_->direct()) return;
  if (position_ < looked_ + interval_) return;
  looked_ = position_;  // even if it is not remembered: bytes_held() costs, too
  if (pass_->bytes_held() > kMostBytesRemembered) return;
  remembered_.emplace(position_, pass_->clone());
  if (remembered_.size() < kMostRemembered) return;
  for (auto it = remembered_.begin(); it != remembered_.end();) {
    it = remembered_.erase(it);
    if (it != remembered_.end()) ++it;
  }
  interval_ *= 2;
}

Status dataset_ended(std::uint64_t elements) {
  return out_of_range(std::string(kEnded) + ": it has " + std::to_string(elements) + " elements");
}

bool is_dataset_end(const Status& status) {
  return status.code() == Code::out_of_range && status.message().starts_with(kEnded);
}

}  // namespace troupe
