#include "actors/client/job_state.hpp"

#include <filesystem>
#include <utility>

#include "actors/runtime/worker_process.hpp"

namespace troupe {

CheckpointData checkpoint_of(JobState state) {
  CheckpointData data;
  data.step = data.commit = state.committed;
  data.seed = state.seed.value_or(0);
  data.numeric_profile = profile_text(numeric_profile());
  data.datasets = std::move(state.datasets);
  data.tensors.insert(state.variables.begin(), state.variables.end());
  data.resources = std::move(state.resources);
  data.note = std::move(state.note);
  data.once = std::move(state.once);
  data.fetches = std::move(state.fetches);
  data.draws = state.draws;
  data.graph = std::move(state.graph);
  return data;
}

JobState state_of(CheckpointData data) {
  return {data.commit,
          {data.tensors.begin(), data.tensors.end()},
          std::move(data.datasets),
          std::move(data.resources),
          std::move(data.note),
          std::move(data.once),
          std::move(data.fetches),
          data.draws,
          std::move(data.graph),
          data.seed,
          {}};
}

JobState state_of(StoredCheckpoint checkpoint) {
  std::vector<StoredVariable> stored = stored_variables(checkpoint);
  JobState state = state_of(std::move(checkpoint.data));
  state.stored = std::move(stored);
  return state;
}

std::vector<StoredVariable> stored_variables(const StoredCheckpoint& checkpoint) {
  const std::filesystem::path folder = std::filesystem::absolute(checkpoint.path);
  std::vector<StoredVariable> all;
  for (const CheckpointFile& file : checkpoint.files)
    for (const StoredTensor& tensor : file.tensors)
      all.push_back({(folder / file.name).string(), tensor});
  return all;
}

}  // namespace troupe
