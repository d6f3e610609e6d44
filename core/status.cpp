#include "core/status.hpp"

#include <array>
#include <atomic>

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

struct Status::Record {
  Code code;
  std::string message;
  Site site;
  std::vector<std::string> trail;
  mutable std::atomic<std::uint32_t> statuses{1};  // that share it
};

void Status::share(const Record* record) noexcept {
  record->statuses.fetch_add(1, std::memory_order_relaxed);
}

void Status::release(const Record* record) noexcept {
  if (record->statuses.fetch_sub(1, std::memory_order_acq_rel) == 1) delete record;
}

Status::Status(Code code, std::string message, Site site)
    : Status(from_parts(code, std::move(message), std::move(site), {})) {}

Status Status::from_parts(Code code, std::string message, Site site,
                          std::vector<std::string> trail) {
  if (code == Code::ok) return {};
  return Status(new Record{code, std::move(message), std::move(site), std::move(trail)});
}

Code Status::code() const { return record_ ? record_->code : Code::ok; }
const std::string& Status::message() const {
  static const std::string none;
  return record_ ? record_->message : none;
}

const Site& Status::site() const {
  static const Site none;
  return record_ ? record_->site : none;
}

const std::vector<std::string>& Status::trail() const {
  static const std::vector<std::string> none;
  return record_ ? record_->trail : none;
}

Status Status::in(std::string context) const& {
  std::vector<std::string> longer = trail();
  longer.push_back(std::move(context));
  return from_parts(code(), message(), site(), std::move(longer));
}

Status Status::at(Site where) const& {
  if (ok() || site().known()) return *this;
  return from_parts(code(), message(), std::move(where), trail());
}

std::string Status::text() const {
  if (ok()) return "ok";
  std::string out;
  if (record_->site.known()) out += record_->site.text() + ": ";
  out += code_name(record_->code);
  if (!record_->message.empty()) out += ": " + record_->message;
  for (std::size_t i = 0; i < record_->trail.size(); ++i)
    out += (i == 0 ? " (" : "; ") + record_->trail[i];
  if (!record_->trail.empty()) out += ")";
  // Messages can come from other processes and from files: a line stays a line.
  for (char& c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return out;
}

std::string Status::report() const {
  if (ok()) return "ok";
  std::size_t cut = record_->message.find('\n');
  const bool notes = cut != std::string::npos;
  Status first = from_parts(record_->code, record_->message.substr(0, cut), {}, record_->trail);
  std::string out = first.text();
  if (record_->site.known()) {
    constexpr std::string_view kUsual = "invalid_argument: ";
    if (out.starts_with(kUsual)) out.erase(0, kUsual.size());
    out = record_->site.text() + ": error: " + out;
  }
  if (notes) out += record_->message.substr(cut);
  for (char& c : out)
    if (c != '\n' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) c = ' ';
  return out;
}

bool operator==(const Status& a, const Status& b) {
  return a.record_ == b.record_ || (a.code() == b.code() && a.message() == b.message() &&
                                    a.site() == b.site() && a.trail() == b.trail());
}

void detail::no_value(const Status& status) { throw Error(status); }

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
