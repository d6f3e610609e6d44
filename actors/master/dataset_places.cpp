#include "actors/master/dataset_places.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe {
namespace {

constexpr const char* kPlaces = "dataset places";

// Removes the highest left elements, as if no run had reached them.
void trim(std::uint64_t& next, std::set<std::uint64_t>& left) {
  while (!left.empty() && *left.rbegin() + 1 == next) {
    left.erase(std::prev(left.end()));
    --next;
  }
}

}  // namespace

bool DatasetPlaces::free(const std::vector<Share>& shares) const {
  return std::none_of(shares.begin(), shares.end(), [&](const Share& share) {
    const auto place = places_.find(share.dataset);
    return place != places_.end() && place->second.open;
  });
}

DatasetPlaces::Elements DatasetPlaces::take(const std::vector<Share>& shares) {
  Elements taken;
  for (const Share& share : shares) {
    Place& place = places_[share.dataset];
    auto& elements = taken.emplace_back();
    if (share.open) {
      place.open = true;
      elements.assign(place.left.begin(), place.left.end());
      elements.push_back(place.next);
      continue;
    }
    while (elements.size() < share.elements)
      elements.push_back(place.left.empty() ? place.next++
                                            : place.left.extract(place.left.begin()).value());
    place.held.insert(elements.begin(), elements.end());
  }
  return taken;
}

void DatasetPlaces::end(const std::vector<Share>& shares, const Elements& elements, bool used,
                        const std::vector<std::uint64_t>& counts) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    Place& place = places_[shares[i].dataset];
    if (shares[i].open) {
      place.open = false;
      if (used && i < counts.size()) use(place, elements[i], counts[i]);
    } else {
      for (std::uint64_t element : elements[i])
        if (place.held.erase(element) > 0 && !used) place.left.insert(element);
    }
    place.changed |= used;
    if (!place.open) trim(place.next, place.left);
  }
}

// Meanwhile other runs may have left elements, but have taken none.
void DatasetPlaces::use(Place& place, const std::vector<std::uint64_t>& given,
                        std::uint64_t count) {
  const std::uint64_t again = std::min<std::uint64_t>(count, given.size() - 1);
  for (std::uint64_t i = 0; i < again; ++i) place.left.erase(given[i]);
  place.next += count - again;
}

DatasetPlace DatasetPlaces::known(const DatasetName& dataset, const Place& place) {
  DatasetPlace known{dataset, place.next, {}};
  std::set<std::uint64_t> left = place.left;
  left.insert(place.held.begin(), place.held.end());
  trim(known.next, left);
  known.left.assign(left.begin(), left.end());
  return known;
}

std::vector<DatasetPlace> DatasetPlaces::places() const {
  std::vector<DatasetPlace> out;
  for (const auto& [dataset, place] : places_)
    if (DatasetPlace each = known(dataset, place); each.next > 0) out.push_back(std::move(each));
  return out;
}

void DatasetPlaces::commit() {
  for (auto& [dataset, place] : places_)
    if (std::exchange(place.changed, false)) committed_[dataset] = known(dataset, place);
}

std::vector<DatasetPlace> DatasetPlaces::committed() const {
  std::vector<DatasetPlace> out;
  for (const auto& [dataset, place] : committed_)
    if (place.next > 0) out.push_back(place);
  return out;
}

void DatasetPlaces::restore(const std::vector<DatasetPlace>& places) {
  places_.clear();
  committed_.clear();
  for (const DatasetPlace& known : places) {
    places_[known.dataset] = {known.next, {known.left.begin(), known.left.end()}, {}};
    committed_[known.dataset] = known;
  }
}

ResourceState DatasetPlaces::save() const {
  StateWriter out;
  out.text(kPlaces);
  const std::vector<DatasetPlace> all = places();
  out.number(all.size());
  for (const DatasetPlace& place : all) {
    out.text(place.dataset.container);
    out.text(place.dataset.name);
    out.number(place.next);
    out.number(place.left.size());
    for (std::uint64_t element : place.left) out.number(element);
  }
  return out.take();
}

Status DatasetPlaces::load(const ResourceState& state) {
  StateReader in(state);
  in.expect(kPlaces);
  std::vector<DatasetPlace> all;
  std::set<DatasetName> different;
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    DatasetPlace& place = all.emplace_back();
    place.dataset.container = in.text();
    place.dataset.name = in.text();
    place.next = in.number();
    for (std::uint64_t left = in.count(); left > 0 && in.ok(); --left)
      place.left.push_back(in.number());
    if (!different.insert(place.dataset).second || !place.possible())
      in.refuse("a dataset twice, or at a place that cannot be");
  }
  TROUPE_TRY(in.end());
  restore(all);
  return ok_status();
}

void DatasetPlaces::rewind(const std::set<std::string>& containers) {
  for (auto& [dataset, place] : places_)
    if (containers.contains(dataset.container)) place = {.changed = true};
}

Status DatasetPlaces::rewind(const std::vector<Share>& shares) {
  if (shares.empty()) return invalid_argument("the step reads no dataset");
  for (const Share& share : shares) {
    auto place = places_.find(share.dataset);
    if (place != places_.end() && (place->second.open || !place->second.held.empty()))
      return failed_precondition("dataset '" + share.dataset.name +
                                 "' cannot begin anew: a run is reading it");
  }
  for (const Share& share : shares) places_[share.dataset] = {.changed = true};
  return ok_status();
}

std::size_t DatasetPlaces::held() const {
  std::size_t n = 0;
  for (const auto& [dataset, place] : places_) n += place.held.size() + (place.open ? 1 : 0);
  return n;
}

}  // namespace troupe
