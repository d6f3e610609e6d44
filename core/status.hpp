// Errors as values: Status, Expected<T>, and the one macro that passes them on.
#pragma once

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "core/site.hpp"

namespace troupe {

// The values cross the wire: append only.
enum class Code : std::uint8_t {
  ok = 0,
  invalid_argument = 1,
  not_found = 2,
  out_of_range = 3,
  unavailable = 4,
  failed_precondition = 5,
  already_exists = 6,
  aborted = 7,
  deadline_exceeded = 8,
  resource_exhausted = 9,
  cancelled = 10,
  data_loss = 11,
  unimplemented = 12,
  internal = 13,
};

// "invalid_argument"; "unknown" for a value outside the enum.
std::string_view code_name(Code code);
// True for a value that came from outside and names a member of Code.
bool valid_code(std::uint8_t value);

// Success, or a code with a message, the creation site of the node that failed, and a trail of
// what was being done, innermost first. Copying an ok status costs nothing; any other shares one
// immutable record.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message, Site site = {});
  Status(const Status& other) noexcept : record_(other.record_) {
    if (record_) share(record_);
  }
  Status(Status&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  Status& operator=(Status other) noexcept {
    std::swap(record_, other.record_);
    return *this;
  }
  ~Status() {
    if (record_) release(record_);
  }

  static Status from_parts(Code code, std::string message, Site site,
                           std::vector<std::string> trail);

  bool ok() const { return record_ == nullptr; }
  explicit operator bool() const = delete;
  Code code() const;
  const std::string& message() const;
  const Site& site() const;
  const std::vector<std::string>& trail() const;

  // The same error, seen from one level further up: "in node 'a' on /worker:0/cpu:0".
  Status in(std::string context) const&;
  // The same error, created at `site` unless one is known already.
  Status at(Site site) const&;

  // "mnist.cpp:15: invalid_argument: MatMul: inner dimensions differ (in node ...)". One line.
  std::string text() const;
  // For a person at a terminal, as a compiler would say it; the notes of a message keep their
  // lines:
  //   mnist.cpp:15: error: MatMul: inner dimensions differ: a is [32,784], b is [748,128]
  //   mnist.cpp:14: note: 'x' created here: f32[32,784]
  // Codes other than invalid_argument are named. Without a known site the first line is text()'s.
  std::string report() const;

  friend bool operator==(const Status& a, const Status& b);

 private:
  // Everything of an error is in status.cpp: every file has hundreds of statuses.
  struct Record;
  explicit Status(const Record* record) : record_(record) {}
  static void share(const Record* record) noexcept;
  static void release(const Record* record) noexcept;

  const Record* record_ = nullptr;
};

inline Status ok_status() { return {}; }

// One maker per code, so that call sites read as sentences: return invalid_argument("...").
Status invalid_argument(std::string message);
Status not_found(std::string message);
Status out_of_range(std::string message);
Status unavailable(std::string message);
Status failed_precondition(std::string message);
Status already_exists(std::string message);
Status aborted(std::string message);
Status deadline_exceeded(std::string message);
Status resource_exhausted(std::string message);
Status cancelled(std::string message);
Status data_loss(std::string message);
Status unimplemented(std::string message);
Status internal_error(std::string message);

namespace detail {
// Throws the status as an Error: somebody took the value that is not there.
[[noreturn]] void no_value(const Status& status);
}  // namespace detail

// A value or the reason why there is none. Not a std::variant, which is long to compile for each
// of some hundred types.
template <class T>
class [[nodiscard]] Expected {
 public:
  using value_type = T;

  Expected(T value) : value_(std::move(value)) {}
  template <class U>
  requires(std::is_convertible_v<U, T> && !std::is_same_v<std::decay_t<U>, T> &&
           !std::is_same_v<std::decay_t<U>, Status> &&
           !std::is_same_v<std::decay_t<U>, Expected<T>>) Expected(U&& value)
      : value_(std::forward<U>(value)) {}
  // REQUIRES: !status.ok().
  Expected(Status status) : status_(std::move(status)) {
    TROUPE_CHECK(!status_.ok(), "an Expected needs a value or an error");
  }
  Expected(const Expected& other) requires std::is_copy_constructible_v<T>
      : status_(other.status_) {
    if (ok()) new (&value_) T(other.value_);
  }
  // An error stays with `other`, too: without it there would be a value.
  Expected(Expected&& other) noexcept(std::is_nothrow_move_constructible_v<T>)
      : status_(other.status_) {
    if (ok()) new (&value_) T(std::move(other.value_));
  }
  Expected& operator=(Expected other) noexcept {
    this->~Expected();
    return *new (this) Expected(std::move(other));
  }
  ~Expected() {
    if (ok()) value_.~T();
  }

  bool ok() const { return status_.ok(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const& { return status_; }
  Status status() && { return status_; }

  // REQUIRES: ok(). Of an Expected that goes away the value itself, so that it outlives the
  // expression: for (auto& x : f().value()).
  T& value() & {
    check();
    return value_;
  }
  const T& value() const& {
    check();
    return value_;
  }
  T value() && {
    check();
    return std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void check() const {
    if (!ok()) [[unlikely]]
      detail::no_value(status_);
  }

  Status status_;
  union {
    T value_;  // exists when the status is ok
  };
};

// What the client's edge throws: graph building and the Session methods without `try_`.
// what() is Status::report().
class Error : public std::runtime_error {
 public:
  explicit Error(Status status) : std::runtime_error(status.report()), status_(std::move(status)) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

// For the client's edge only: the value, or a thrown Error.
template <class T>
T value_or_throw(Expected<T> e) {
  if (!e.ok()) throw Error(e.status());
  return std::move(e).value();
}
inline void throw_if_error(Status s) {
  if (!s.ok()) throw Error(std::move(s));
}

namespace detail {
inline Status as_status(Status s) { return s; }
template <class T>
Status as_status(const Expected<T>& e) {
  return e.status();
}
}  // namespace detail

}  // namespace troupe

#define TROUPE_TRY_CAT2(a, b) a##b
#define TROUPE_TRY_CAT(a, b) TROUPE_TRY_CAT2(a, b)
#define TROUPE_TRY_1(expr)                                                                   \
  do {                                                                                       \
    if (auto troupe_try_status = ::troupe::detail::as_status(expr); !troupe_try_status.ok()) \
      return troupe_try_status;                                                              \
  } while (false)
#define TROUPE_TRY_2_IMPL(tmp, decl, expr) \
  auto tmp = (expr);                       \
  if (!tmp.ok()) return tmp.status();      \
  decl = std::move(tmp).value()
#define TROUPE_TRY_2(decl, expr) \
  TROUPE_TRY_2_IMPL(TROUPE_TRY_CAT(troupe_try_, __COUNTER__), decl, expr)
#define TROUPE_TRY_PICK(_1, _2, NAME, ...) NAME
// TROUPE_TRY(expr): returns the error of a Status or Expected.
// TROUPE_TRY(auto x, expr): declares x as the value of an Expected, or returns its error.
// An expression with commas outside parentheses goes in parentheses of its own.
#define TROUPE_TRY(...) TROUPE_TRY_PICK(__VA_ARGS__, TROUPE_TRY_2, TROUPE_TRY_1, )(__VA_ARGS__)
