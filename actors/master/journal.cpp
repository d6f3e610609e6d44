#include "actors/master/journal.hpp"

#include <utility>

#include "core/content_bytes.hpp"

namespace troupe {
namespace {

bool small(const std::vector<Tensor>& fetches) {
  std::size_t bytes = 0;
  for (const Tensor& value : fetches) {
    if (value.dtype() == DType::list || value.space() != MemorySpace::host) return false;
    bytes += content_bytes(value);
    if (bytes > kSmallFetches) return false;
  }
  return true;
}

}  // namespace

void Journal::resume(JobPlace place) {
  note_ = std::make_shared<const std::string>(std::move(place.note));
  once_ = std::move(place.once);
  fetches_ = std::move(place.fetches);
  draws_ = resumed_draws_ = place.draws;
  unasked_ = !note_->empty() || !once_.empty();
}

void Journal::commit(const std::shared_ptr<const std::string>& note, std::vector<Tensor> fetches) {
  if (note) note_ = note;
  draws_ = resumed_draws_ = 0;
  fetches_ = small(fetches) ? std::move(fetches) : std::vector<Tensor>();
}

void Journal::mark(std::string note, std::uint64_t draws) {
  note_ = std::make_shared<const std::string>(std::move(note));
  draws_ = draws;
}

void Journal::done(std::string name, std::uint64_t draws) {
  once_.insert(std::move(name));
  draws_ = draws;
}

void Journal::write_to(JobPlace& place) const {
  if (note_) place.note = *note_;
  place.once = once_;
  place.fetches = fetches_;
  place.draws = draws_;
}

}  // namespace troupe
