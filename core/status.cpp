#include "troupe/core/status.hpp"

#include <array>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 14> kCodeNames = {"ok",
                                                         "invalid_argument",
                                                         "not_found",
                                                         "out_of_range",
                                                         "unavailable",
                                                         "failed_precondition",
                                                         "already_exists",
                                                         "aborted",
                                                         "deadline_exceeded",
                                                         "resource_exhausted",
                                                         "cancelled",
                                                         "data_loss",
                                                         "unimplemented",
                                                         "internal"};

}  // namespace

std::string_view code_name(Code code) {
  auto i = std::size_t(code);
  return i < kCodeNames.size() ? kCodeNames[i] : "unknown";
}

bool valid_code(std::uint8_t value) { return value < kCodeNames.size(); }

Status::Status(Code code, std::string message, Site site) {
  if (code == Code::ok) return;
  rep_ = std::make_shared<const Rep>(Rep{code, std::move(message), std::move(site), {}, 0});
}

Status Status::from_parts(Code code, std::string message, Site site, std::vector<std::string> trail,
                          std::uint64_t cause) {
  Status s;
  if (code == Code::ok) return s;
  s.rep_ = std::make_shared<const Rep>(
      Rep{code, std::move(message), std::move(site), std::move(trail), cause});
  return s;
}

const std::string& Status::message() const {
  static const std::string none;
  return rep_ ? rep_->message : none;
}

const Site& Status::site() const {
  static const Site none;
  return rep_ ? rep_->site : none;
}

const std::vector<std::string>& Status::trail() const {
  static const std::vector<std::string> none;
  return rep_ ? rep_->trail : none;
}

Status Status::in(std::string context) const& {
  if (ok()) return {};
  Rep rep = *rep_;
  rep.trail.push_back(std::move(context));
  Status s;
  s.rep_ = std::make_shared<const Rep>(std::move(rep));
  return s;
}

Status Status::at(Site site) const& {
  if (ok() || rep_->site.known()) return *this;
  Rep rep = *rep_;
  rep.site = std::move(site);
  Status s;
  s.rep_ = std::make_shared<const Rep>(std::move(rep));
  return s;
}

Status Status::caused_by(std::uint64_t cause_id) const& {
  if (ok()) return {};
  Rep rep = *rep_;
  rep.cause = cause_id;
  Status s;
  s.rep_ = std::make_shared<const Rep>(std::move(rep));
  return s;
}

std::string Status::text() const {
  if (ok()) return "ok";
  std::string out;
  if (rep_->site.known()) out += rep_->site.text() + ": ";
  out += code_name(rep_->code);
  if (!rep_->message.empty()) out += ": " + rep_->message;
  for (std::size_t i = 0; i < rep_->trail.size(); ++i)
    out += (i == 0 ? " (" : "; ") + rep_->trail[i];
  if (!rep_->trail.empty()) out += ")";
  // Messages can come from other processes and from files: a line stays a line.
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return out;
}

std::string Status::report() const {
  if (ok()) return "ok";
  std::size_t cut = rep_->message.find('\n');
  const bool notes = cut != std::string::npos;
  Status first = from_parts(rep_->code, rep_->message.substr(0, cut), {}, rep_->trail, rep_->cause);
  std::string out = first.text();
  if (rep_->site.known()) {
    constexpr std::string_view kUsual = "invalid_argument: ";
    if (out.starts_with(kUsual)) out.erase(0, kUsual.size());
    out = rep_->site.text() + ": error: " + out;
  }
  if (notes) out += rep_->message.substr(cut);
  for (char& c : out)
    if (c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) c = ' ';
  return out;
}

bool operator==(const Status& a, const Status& b) {
  if (a.rep_ == b.rep_) return true;
  if (!a.rep_ || !b.rep_) return false;
  return a.rep_->code == b.rep_->code && a.rep_->message == b.rep_->message &&
         a.rep_->site == b.rep_->site && a.rep_->trail == b.rep_->trail &&
         a.rep_->cause == b.rep_->cause;
}

Status invalid_argument(std::string m) { return {Code::invalid_argument, std::move(m)}; }
Status not_found(std::string m) { return {Code::not_found, std::move(m)}; }
Status out_of_range(std::string m) { return {Code::out_of_range, std::move(m)}; }
Status unavailable(std::string m) { return {Code::unavailable, std::move(m)}; }
Status failed_precondition(std::string m) { return {Code::failed_precondition, std::move(m)}; }
Status already_exists(std::string m) { return {Code::already_exists, std::move(m)}; }
Status aborted(std::string m) { return {Code::aborted, std::move(m)}; }
Status deadline_exceeded(std::string m) { return {Code::deadline_exceeded, std::move(m)}; }
Status resource_exhausted(std::string m) { return {Code::resource_exhausted, std::move(m)}; }
Status cancelled(std::string m) { return {Code::cancelled, std::move(m)}; }
Status data_loss(std::string m) { return {Code::data_loss, std::move(m)}; }
Status unimplemented(std::string m) { return {Code::unimplemented, std::move(m)}; }
Status internal_error(std::string m) { return {Code::internal, std::move(m)}; }

}  // namespace troupe
