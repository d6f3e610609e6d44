#include "troupe/actors/master/dataset_places.hpp"

#include <iterator>

namespace troupe {
namespace {

// The highest elements were never used: they are as if nobody had come so far.
void trim(std::uint64_t& next, std::set<std::uint64_t>& left) {
  while (!left.empty() && *left.rbegin() + 1 == next) {
    left.erase(std::prev(left.end()));
    --next;
  }
}

}  // namespace

DatasetPlaces::Elements DatasetPlaces::take(const std::vector<Share>& shares) {
  Elements taken;
  for (const Share& share : shares) {
    Place& place = places_[share.dataset];
    auto& elements = taken.emplace_back();
    while (elements.size() < share.elements)
      elements.push_back(place.left.empty() ? place.next++
                                            : place.left.extract(place.left.begin()).value());
    place.held.insert(elements.begin(), elements.end());
  }
  return taken;
}

void DatasetPlaces::end(const std::vector<Share>& shares, const Elements& elements, bool used) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    Place& place = places_[shares[i].dataset];
    for (std::uint64_t element : elements[i])
      if (place.held.erase(element) > 0 && !used) place.left.insert(element);
    trim(place.next, place.left);
  }
}

std::vector<DatasetPlace> DatasetPlaces::places() const {
  std::vector<DatasetPlace> out;
  for (const auto& [dataset, place] : places_) {
    DatasetPlace known{dataset, place.next, {}};
    std::set<std::uint64_t> left = place.left;
    left.insert(place.held.begin(), place.held.end());
    trim(known.next, left);
    known.left.assign(left.begin(), left.end());
    if (known.next > 0) out.push_back(std::move(known));
  }
  return out;
}

void DatasetPlaces::restore(const std::vector<DatasetPlace>& places) {
  places_.clear();
  for (const DatasetPlace& known : places)
    places_[known.dataset] = {known.next, {known.left.begin(), known.left.end()}, {}};
}

void DatasetPlaces::rewind(const std::set<std::string>& containers) {
  std::erase_if(places_,
                [&](const auto& entry) { return containers.contains(entry.first.container); });
}

Status DatasetPlaces::rewind(const std::vector<Share>& shares) {
  if (shares.empty()) return invalid_argument("the step reads no dataset");
  for (const Share& share : shares) {
    auto place = places_.find(share.dataset);
    if (place != places_.end() && !place->second.held.empty())
      return failed_precondition("dataset '" + share.dataset.name +
                                 "' cannot begin anew: a run is reading it");
  }
  for (const Share& share : shares) places_.erase(share.dataset);
  return ok_status();
}

std::size_t DatasetPlaces::held() const {
  std::size_t n = 0;
  for (const auto& [dataset, place] : places_) n += place.held.size();
  return n;
}

}  // namespace troupe
