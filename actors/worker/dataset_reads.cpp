#include "actors/worker/dataset_reads.hpp"

#include <algorithm>

namespace troupe {

std::vector<DatasetRead> dataset_reads(const Plan& plan) {
  std::vector<DatasetRead> reads;
  for (std::uint32_t r = 0; r < plan.resources.size(); ++r)
    if (plan.resources[r].kind == "dataset") reads.push_back({r, 1});
  for (const PlanInfo& info : plan.info)
    for (DatasetRead& read : reads) {
      if (info.resource != read.resource) continue;
      if (info.external && info.external->verb == "at") read.open = true;
      auto replicas = info.def.attrs.find("replicas");
      if (replicas == info.def.attrs.end()) continue;
      if (const std::int64_t* n = replicas->second.get<std::int64_t>())
        read.elements = std::max(read.elements, std::uint32_t(std::max<std::int64_t>(1, *n)));
    }
  return reads;
}

}  // namespace troupe
