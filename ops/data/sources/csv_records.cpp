#include "ops/data/sources/csv_records.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

constexpr std::size_t kLongestRecord = std::size_t{16} << 20, kMostCells = 1'000'000;

Expected<CsvRecords> CsvRecords::open(DataFilePtr file, char delimiter) {
  TROUPE_TRY(ByteStream stream, ByteStream::open(std::move(file)));
  return CsvRecords(std::move(stream), delimiter);
}

Status CsvRecords::wrong(const std::string& why) const {
  return in_file(data_loss("line " + std::to_string(begin_line_) + ": " + why), stream_.file());
}

Expected<int> CsvRecords::peek() {
  TROUPE_TRY(const std::string_view chunk, stream_.chunk());
  return chunk.empty() ? -1 : int(std::uint8_t(chunk[0]));
}

Expected<int> CsvRecords::take() {
  TROUPE_TRY(const int byte, peek());
  if (byte >= 0) stream_.consume(1);
  if (byte == '\n') ++line_;
  return byte;
}

// Spreadsheets write one.
Status CsvRecords::skip_byte_order_mark() {
  TROUPE_TRY(const std::string_view chunk, stream_.chunk());
  if (chunk.starts_with("\xef\xbb\xbf")) stream_.consume(3);
  return ok_status();
}

Expected<bool> CsvRecords::next(std::vector<std::string>& cells) {
  if (!std::exchange(started_, true)) TROUPE_TRY(skip_byte_order_mark());
  for (;;) {
    cells.clear();
    begin_line_ = line_;
    size_ = 0;
    TROUPE_TRY(const int first, peek());
    if (first < 0) return false;
    for (bool more = true; more;) {
      if (cells.size() == kMostCells)
        return wrong("more than " + std::to_string(kMostCells) + " cells");
      TROUPE_TRY(more, read_cell(cells.emplace_back()));
    }
    const bool empty_line = cells.size() == 1 && cells[0].empty() && first != '"';
    if (!empty_line) return true;
  }
}

Status CsvRecords::grow(std::size_t by) {
  size_ += by;
  if (size_ <= kLongestRecord) return ok_status();
  return wrong("a record of more than " + std::to_string(kLongestRecord) +
               " bytes; is a quote not closed?");
}

Expected<bool> CsvRecords::read_cell(std::string& cell) {
  TROUPE_TRY(const int first, peek());
  if (first == '"') return quoted_rest(cell);
  for (;;) {
    // All that is plain at once.
    TROUPE_TRY(const std::string_view chunk, stream_.chunk());
    const char stops[] = {delimiter_, '\n', '"'};
    const std::size_t n = std::min(chunk.find_first_of(std::string_view(stops, 3)), chunk.size());
    TROUPE_TRY(grow(n));
    cell.append(chunk.substr(0, n));
    stream_.consume(n);
    TROUPE_TRY(const int byte, take());
    if (byte == '"') return wrong("a quote inside of a cell that does not begin with one");
    if (byte == std::uint8_t(delimiter_)) return true;
    if (byte != '\n' && byte >= 0) {
      cell += char(byte);  // the first of the next chunk
      continue;
    }
    if (cell.ends_with('\r')) cell.pop_back();
    return false;
  }
}

// After the first quote, which is still to be taken.
Expected<bool> CsvRecords::quoted_rest(std::string& cell) {
  TROUPE_TRY(take());
  for (;;) {
    TROUPE_TRY(int byte, take());
    if (byte < 0) return wrong("a quote that is not closed");
    TROUPE_TRY(grow(1));
    if (byte != '"') {
      cell += char(byte);
      continue;
    }
    TROUPE_TRY(byte, take());
    if (byte == '"') {
      cell += '"';
      continue;
    }
    if (byte == '\r') {
      TROUPE_TRY(byte, take());
      if (byte >= 0 && byte != '\n') return wrong("a return in the middle of a line");
    }
    if (byte == std::uint8_t(delimiter_)) return true;
    if (byte < 0 || byte == '\n') return false;
    return wrong("text after a quote that closes a cell");
  }
}

}  // namespace troupe
