// The input pipeline as a function from an element's number to the element.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/function_ref.hpp"
#include "ops/data/stage.hpp"

namespace troupe {

// An open pipeline. Element e depends only on e, the files and the stages, so any worker, restarted
// or not, produces the same one.
//
// It keeps its position after the last element, so reading in order is sequential. If all stages
// are direct (Stage::direct), any other position is reached at once. Otherwise the elements between
// are skipped, from the nearest of a few remembered positions or from the start. Of elements that a
// short step forwards passes, those that others will request are kept, since replicas ask in any
// order.
//
// One user at a time.
class Pipeline {
 public:
  // An element that does not fit `declared` is an error.
  Pipeline(StagePtr last, Signature declared);
  Pipeline(Pipeline&&) noexcept = default;

  const Signature& signature() const { return declared_; }
  // The number of elements, if known: that of a stream is known only at its end.
  std::optional<std::uint64_t> elements() const;

  // Whether somebody will request the element of that number, too.
  using Awaited = FunctionRef<bool(std::uint64_t)>;
  // Past the end: dataset_ended().
  Expected<std::vector<Tensor>> element(std::uint64_t number, Awaited awaited);
  Expected<std::vector<Tensor>> element(std::uint64_t number) {
    return element(number, [](std::uint64_t) { return true; });
  }

 private:
  Status seek(std::uint64_t number, Awaited awaited);
  Expected<std::optional<Example>> advance();
  Status skip_to(std::uint64_t number);
  void keep_until(std::uint64_t number, Awaited awaited);
  Expected<std::vector<Tensor>> checked(std::uint64_t number, Example element) const;
  void remember();

  StagePtr last_;
  Signature declared_;
  std::optional<std::uint64_t> end_;
  std::unique_ptr<Pass> pass_;  // null at the end or after an error
  std::uint64_t position_ = 0;  // the number of the next element
  std::map<std::uint64_t, std::unique_ptr<Pass>> remembered_;
  std::map<std::uint64_t, Example> kept_;  // made, but not requested yet
  std::uint64_t interval_;                 // elements between remembered positions
  std::uint64_t looked_ = 0;               // the last position considered for remembering
};

// out_of_range: the dataset has only `elements` elements. is_dataset_end() tells this error from
// other out_of_range errors.
Status dataset_ended(std::uint64_t elements);
bool is_dataset_end(const Status& status);

}  // namespace troupe
