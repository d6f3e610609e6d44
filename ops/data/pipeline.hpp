// The input pipeline as a function: an element's number in, the element out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "ops/data/stage.hpp"

namespace troupe {

// An opened pipeline. Element e is a function of e, the files and the stages alone, so any worker,
// restarted or not, makes the same one.
//
// It keeps the place after the element that was asked for last: asking in order reads on. Another
// place is reached at once where all stages are direct (Stage::direct); otherwise by passing over
// what is between, from the nearest of a few places that it remembers, or from the start.
// Elements that a short step forwards would pass over are kept for whoever asks next: replicas do
// so in any order.
//
// One user at a time.
class Pipeline {
 public:
  // Elements that are not of `declared` are refused.
  Pipeline(StagePtr last, Signature declared);
  Pipeline(Pipeline&&) noexcept = default;

  const Signature& signature() const { return declared_; }
  // How many there are, as far as it is known: that of a stream shows at its end.
  std::optional<std::uint64_t> elements() const;

  // Past the end: dataset_ended().
  Expected<std::vector<Tensor>> element(std::uint64_t number);

 private:
  Status seek(std::uint64_t number);
  Expected<std::optional<Example>> advance();
  Status skip_to(std::uint64_t number);
  void keep_until(std::uint64_t number);
  Expected<std::vector<Tensor>> checked(std::uint64_t number, const Example& element) const;
  void remember();

  StagePtr last_;
  Signature declared_;
  std::optional<std::uint64_t> end_;
  std::unique_ptr<Pass> pass_;  // none after an error
  std::uint64_t position_ = 0;  // of the element that it gives next
  std::map<std::uint64_t, std::unique_ptr<Pass>> remembered_;
  std::map<std::uint64_t, Example> kept_;  // made, and not asked for yet
  std::uint64_t interval_;                 // elements between places to remember
  std::uint64_t looked_ = 0;               // the last place that was thought of
};

// out_of_range: there is no element after `elements` of them. And whether a run has failed because
// of that, rather than of anything else that is out of range.
Status dataset_ended(std::uint64_t elements);
bool is_dataset_end(const Status& status);

}  // namespace troupe
