// VariableStore: saving and loading its state and its staged record.
#include <algorithm>
#include <limits>

#include "actors/resources/variable_store.hpp"

namespace troupe {
namespace {

constexpr const char* kVariableValues = "variables";
constexpr const char* kVariablesRecord = "variables record";

void write_spec(const VariableSpec& spec, StateWriter& out) {
  out.text(spec.name);
  out.number(std::uint64_t(spec.dtype));
  out.number(spec.shape.known_rank());
  if (!spec.shape.known_rank()) return;
  out.number(std::uint64_t(spec.shape.rank()));
  for (std::int64_t dim : spec.shape.dims()) out.number(std::uint64_t(dim));
}

Expected<VariableSpec> read_spec(StateReader& in) {
  VariableSpec spec;
  spec.name = in.text();
  const std::uint64_t dtype = in.number();
  if (dtype > std::numeric_limits<std::uint8_t>::max() || !valid_dtype(std::uint8_t(dtype)))
    in.refuse("a variable of unknown type");
  else
    spec.dtype = DType(dtype);
  spec.shape = PartialShape::unknown();
  if (!in.flag()) return spec;
  std::vector<std::int64_t> dims;
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n)
    dims.push_back(std::int64_t(in.number()));
  TROUPE_TRY(spec.shape, PartialShape::make(dims));
  return spec;
}

}  // namespace

Expected<ResourceState> VariableStore::save(Outputs& out) {
  TROUPE_TRY(broken_);
  apply_next(true, out);
  if (!committing_.empty())
    return unavailable("commit " + std::to_string(committing_.front().s) + " of container " +
                       name_ + " is being applied");
  StateWriter words;
  words.text(kVariableValues);
  words.number(committed_);
  words.number(variables_.size());
  for (const auto& [name, v] : variables_) {
    write_spec(v.spec, words);
    words.number(v.initialised);
    if (!v.initialised) continue;
    words.number(v.since);
    words.number(v.versions.back().s);
    words.tensor(v.versions.back().value);
  }
  return words.take();
}

Status VariableStore::load(const ResourceState& state) {
  TROUPE_TRY(broken_);
  TROUPE_TRY(untouched());
  StateReader in(state);
  in.expect(kVariableValues);
  const CommitNumber committed = in.number();
  std::map<std::string, Variable, std::less<>> all;
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    Variable v;
    TROUPE_TRY(v.spec, read_spec(in));
    v.initialised = in.flag();
    if (v.initialised) {
      v.since = in.number();
      Version version{in.number(), in.tensor(), 0};
      if (v.since == 0 || v.since > version.s || version.s > committed)
        in.refuse("a value of a commit that cannot be");
      if (!in.ok()) break;
      if (version.value.dtype() != v.spec.dtype || !v.spec.shape.accepts(version.value.shape()))
        return invalid_argument("variable '" + v.spec.name + "' is " +
                                std::string(dtype_name(v.spec.dtype)) + v.spec.shape.text() +
                                " and has a value of another kind");
      v.shape = version.value.shape();
      v.versions.push_back(std::move(version));
    }
    auto known = variables_.find(v.spec.name);
    if (known != variables_.end() &&
        (known->second.spec.dtype != v.spec.dtype || known->second.spec.shape != v.spec.shape))
      return invalid_argument("variable '" + v.spec.name + "' is declared otherwise here");
    std::string name = v.spec.name;
    if (!all.emplace(std::move(name), std::move(v)).second)
      in.refuse("a variable that is there twice");
  }
  TROUPE_TRY(in.end());
  for (auto& [name, v] : all) variables_.insert_or_assign(name, std::move(v));
  committed_ = committed;
  return ok_status();
}

Expected<ResourceState> VariableStore::record(ToldRules& told) const {
  if (!staged_) return nothing_staged();
  StateWriter out;
  out.text(kVariablesRecord);
  out.staged({staged_->s, staged_->attempt, staged_->hash});
  out.number(staged_->record.reductions.size());
  for (const WriteReduction& write : staged_->record.reductions) {
    told.write(*write.rule, out);
    out.number(write.contributions.size());
    for (const auto& operands : write.contributions) out.tensors(operands);
  }
  return out.take();
}

// Writes in the order in which they were logged.
Expected<VariableStore::AttemptLog> VariableStore::read_log(StateReader& in,
                                                            KnownRules& known) const {
  LogRequest request;
  for (std::uint64_t n = in.count(); n > 0 && in.ok(); --n) {
    TROUPE_TRY(auto rule, known.read(in));
    const std::uint64_t contributions = in.count();
    if (contributions == 0 || contributions > rule->replicas)
      in.refuse("a write with more contributions than replicas, or none");
    for (std::uint64_t c = 0; c < contributions && in.ok(); ++c) {
      WriteKey key{std::uint32_t(request.writes.size()), std::uint32_t(c), {}};
      if (c > 0) key.node = request.writes.back().key.node;
      request.writes.push_back({std::move(key), rule, in.tensors()});
      for (const Tensor& operand : request.writes.back().operands)
        if (!operand.defined()) in.refuse("a contribution without a value");
    }
  }
  TROUPE_TRY(in.end());
  AttemptLog log;
  TROUPE_TRY(check(request, nullptr, log.metas));
  for (LoggedWrite& write : request.writes) append(log, std::move(write));
  return log;
}

Status VariableStore::stage_record(const ResourceState& state, KnownRules& known, Outputs& out) {
  TROUPE_TRY(broken_);
  StateReader in(state);
  in.expect(kVariablesRecord);
  const StagedHeader header = in.staged();
  // It is checked against the state after the commits before it.
  if (in.ok()) {
    TROUPE_TRY(const bool is_new, make_way(header.s, header.attempt, out));
    if (!is_new) return ok_status();
  }
  TROUPE_TRY(AttemptLog log, read_log(in, known));
  Record record = make_record(header.s, std::move(log)).second;
  TROUPE_TRY(reserve(record, true));
  staged_ = Staged{header.s, header.attempt, header.hash, std::move(record)};
  return ok_status();
}

}  // namespace troupe
