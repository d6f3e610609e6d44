#include "actors/master/kept_answers.hpp"

namespace troupe {

bool KeptAnswers::close(std::uint64_t session) {
  auto at = sessions_.find(session);
  if (at == sessions_.end()) return false;
  at->second.closing = true;
  return true;
}

bool KeptAnswers::is_open(std::uint64_t session) const {
  auto at = sessions_.find(session);
  return at != sessions_.end() && !at->second.closing;
}

std::vector<std::uint64_t> KeptAnswers::closing() const {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, session] : sessions_)
    if (session.closing) ids.push_back(id);
  return ids;
}

void KeptAnswers::acknowledge(std::uint64_t session, const Acknowledged& arrived) {
  auto at = sessions_.find(session);
  if (at == sessions_.end()) return;
  at->second.acknowledged.merge(arrived);
  std::erase_if(at->second.answers,
                [&](const auto& kept) { return at->second.acknowledged.covers(kept.first); });
}

bool KeptAnswers::acknowledged(const RunId& run) const {
  auto at = sessions_.find(run.session);
  return at != sessions_.end() && at->second.acknowledged.covers(run.n);
}

const RunAnswer* KeptAnswers::find(const RunId& run) const {
  auto session = sessions_.find(run.session);
  if (session == sessions_.end()) return nullptr;
  auto known = session->second.answers.find(run.n);
  return known == session->second.answers.end() ? nullptr : &known->second;
}

void KeptAnswers::keep(const RunAnswer& answer) {
  auto session = sessions_.find(answer.run.session);
  if (session != sessions_.end() && !session->second.closing)
    session->second.answers.insert_or_assign(answer.run.n, answer);
}

std::size_t KeptAnswers::size() const {
  std::size_t n = 0;
  for (const auto& [id, session] : sessions_) n += session.answers.size();
  return n;
}

}  // namespace troupe
