#include "core/name.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace troupe {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }
char upper(char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; }

std::string map_text(std::string_view text, char (*f)(char)) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), f);
  return out;
}

// Digits only, no sign, no leading zero, fits an int.
std::optional<int> parse_number(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) return std::nullopt;
  if (!std::all_of(text.begin(), text.end(), is_digit)) return std::nullopt;
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

// A letter, then letters, digits and underscores: names of jobs and of device types.
bool valid_word(std::string_view text) {
  return !text.empty() && text.size() <= 255 && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

// Device types that may stand as a key of their own: "/cpu:0". Others need "/device:TYPE:0".
bool short_type(std::string_view upper_case) {
  return upper_case == "CPU" || upper_case == "GPU" || upper_case == "CUDA" || upper_case == "FAKE";
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// Reads the parts of one device name; remembers which were given, since "*" leaves no other trace.
class DeviceParser {
 public:
  explicit DeviceParser(std::string_view text) : text_(text) {}

  Expected<DeviceName> parse() {
    if (text_.empty()) return name_;
    if (text_[0] != '/') {  // "CPU:0"
      TROUPE_TRY(part(text_));
      if (!seen_device_) return wrong("it does not start with '/'");
      return name_;
    }
    for (std::string_view p : split(text_.substr(1), '/')) TROUPE_TRY(part(p));
    return name_;
  }

 private:
  Status wrong(const std::string& why) const {
    return invalid_argument("device name " + quoted(text_) + ": " + why);
  }

  Status part(std::string_view p) {
    std::size_t colon = p.find(':');
    if (colon == std::string_view::npos) return wrong("part " + quoted(p) + " is not KEY:VALUE");
    std::string_view key = p.substr(0, colon), value = p.substr(colon + 1);
    if (key == "job") return job(value);
    if (key == "task") return number(value, "task", seen_task_, name_.task);
    if (key == "replica") return replica(value);
    if (key == "device") {
      std::size_t second = value.find(':');
      if (second == std::string_view::npos) return device(value, "*");
      return device(value.substr(0, second), value.substr(second + 1));
    }
    if (short_type(map_text(key, upper))) return device(key, value);
    return wrong("unknown key " + quoted(key) +
                 "; the keys are job, task, cpu, gpu, cuda, fake and device (as in "
                 "/job:local/task:0/cpu:0 or /device:TYPE:0)");
  }

  Status job(std::string_view value) {
    if (std::exchange(seen_job_, true)) return wrong("job is given twice");
    if (value == "*") return ok_status();
    if (!valid_word(value)) return wrong("bad job " + quoted(value));
    name_.job = std::string(value);
    return ok_status();
  }

  Status replica(std::string_view value) {
    if (std::exchange(seen_replica_, true)) return wrong("replica is given twice");
    if (value != "*" && value != "0") return wrong("replica is not 0");
    return ok_status();
  }

  Status number(std::string_view value, std::string_view key, bool& seen, std::optional<int>& out) {
    if (std::exchange(seen, true)) return wrong(std::string(key) + " is given twice");
    if (value == "*") return ok_status();
    out = parse_number(value);
    if (!out) return wrong("bad " + std::string(key) + " " + quoted(value));
    return ok_status();
  }

  Status device(std::string_view type, std::string_view index) {
    if (type != "*") {
      if (!valid_word(type)) return wrong("bad device type " + quoted(type));
      name_.type = map_text(type, upper);
      if (name_.type == "GPU") name_.type = "CUDA";
    }
    return number(index, "device", seen_device_, name_.index);
  }

  std::string_view text_;
  DeviceName name_;
  bool seen_job_ = false, seen_task_ = false, seen_replica_ = false, seen_device_ = false;
};

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t change = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

bool valid_node_name(std::string_view name) {
  if (name.empty() || name.size() > 1024) return false;
  if (!is_letter(name[0]) && !is_digit(name[0]) && name[0] != '.') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '-' || c == '/';
  });
}

Expected<PortName> PortName::parse(std::string_view text) {
  PortName out;
  std::string_view rest = text;
  if (!rest.empty() && rest[0] == '^') {
    out.control = true;
    rest.remove_prefix(1);
  }
  std::size_t colon = rest.find(':');
  if (colon != std::string_view::npos) {
    if (out.control) return invalid_argument("control edge " + quoted(text) + " names a port");
    auto port = parse_number(rest.substr(colon + 1));
    if (!port) return invalid_argument("tensor name " + quoted(text) + ": bad port");
    out.port = *port;
    rest = rest.substr(0, colon);
  }
  if (!valid_node_name(rest))
    return invalid_argument("tensor name " + quoted(text) + ": bad node name");
  out.node = std::string(rest);
  return out;
}

std::string PortName::text() const {
  if (control) return "^" + node;
  return port == 0 ? node : node + ":" + std::to_string(port);
}

Expected<DeviceName> DeviceName::parse(std::string_view text) { return DeviceParser(text).parse(); }

bool DeviceName::matches(const DeviceName& full) const {
  return (!job || job == full.job) && (!task || task == full.task) &&
         (!type || type == full.type) && (!index || index == full.index);
}

Expected<DeviceName> DeviceName::merge(const DeviceName& a, const DeviceName& b, bool soft) {
  auto conflict = [&](const char* part) {
    return invalid_argument("devices '" + a.text() + "' and '" + b.text() + "' differ in " + part);
  };
  auto differ = [](const auto& x, const auto& y) { return x && y && *x != *y; };
  if (differ(a.job, b.job)) return conflict("job");
  if (differ(a.task, b.task)) return conflict("task");
  DeviceName out;
  out.job = a.job ? a.job : b.job;
  out.task = a.task ? a.task : b.task;
  if (differ(a.type, b.type)) {
    if (!soft) return conflict("type");
    return out;  // an index means nothing without its type
  }
  out.type = a.type ? a.type : b.type;
  if (differ(a.index, b.index)) {
    if (!soft) return conflict("index");
    return out;
  }
  out.index = a.index ? a.index : b.index;
  return out;
}

std::string DeviceName::text() const {
  std::string out;
  if (job) out += "/job:" + *job;
  if (task) out += "/task:" + std::to_string(*task);
  if (type || index) {
    if (!type || !short_type(*type))
      out += "/device:" + type.value_or("*");
    else
      out += "/" + map_text(*type, lower);
    out += ":" + (index ? std::to_string(*index) : "*");
  }
  return out;
}

std::strong_ordering operator<=>(const DeviceName& a, const DeviceName& b) {
  // Not std::optional's operator<=>, which clang 14 cannot instantiate with libstdc++ 12.
  auto order = [](const auto& x, const auto& y) {
    if (!x || !y) return bool(x) <=> bool(y);
    return *x < *y   ? std::strong_ordering::less
           : *y < *x ? std::strong_ordering::greater
                     : std::strong_ordering::equal;
  };
  if (auto c = order(a.job, b.job); c != 0) return c;
  if (auto c = order(a.task, b.task); c != 0) return c;
  if (auto c = order(a.type, b.type); c != 0) return c;
  return order(a.index, b.index);
}

Status check_path(std::string_view path) {
  const std::size_t nul = path.find('\0');
  if (nul == path.npos) return ok_status();
  return invalid_argument("a path with a NUL behind " + quoted(path.substr(0, nul)));
}

std::string quoted(std::string_view name) {
  constexpr std::size_t kMost = 80;
  std::string shown(name.substr(0, kMost));
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';  // errors are one line
  return "'" + shown + (name.size() > kMost ? "...'" : "'");
}

std::vector<std::string> near_names(std::string_view wanted, const std::vector<std::string>& known,
                                    std::size_t most) {
  // Farther than this is no slip of the finger. Long input is cut: the cost is a product.
  wanted = wanted.substr(0, 128);
  const std::size_t limit = std::max<std::size_t>(2, wanted.size() / 3);
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& name : known) {
    std::size_t longer = std::max(name.size(), wanted.size());
    if (longer - std::min(name.size(), wanted.size()) > limit) continue;
    std::size_t distance = edit_distance(wanted, name);
    if (distance <= limit && distance < longer) near.emplace_back(distance, name);
  }
  std::sort(near.begin(), near.end());
  if (near.size() > most) near.resize(most);
  std::vector<std::string> out;
  for (auto& [distance, name] : near) out.push_back(std::move(name));
  return out;
}

}  // namespace troupe
