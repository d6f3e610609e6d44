// The records of a CSV file (RFC 4180).
#pragma once

#include <string>
#include <vector>

#include "ops/data/byte_stream.hpp"

namespace troupe {

// Reads forwards; a copy continues independently. A record has at most 16 MiB and a million cells.
class CsvRecords {
 public:
  static Expected<CsvRecords> open(DataFilePtr file, char delimiter);

  // The cells of the next record, without empty lines; false at the end. data_loss for quotes that
  // are not closed, or are inside of an unquoted cell.
  Expected<bool> next(std::vector<std::string>& cells);
  // data_loss: `why`, in the last record, with the line on which it begins.
  Status wrong(const std::string& why) const;
  std::size_t bytes_held() const { return stream_.bytes_held(); }

 private:
  CsvRecords(ByteStream stream, char delimiter)
      : stream_(std::move(stream)), delimiter_(delimiter) {}
  Expected<int> take();  // a byte; -1: the end
  Expected<int> peek();
  Status skip_byte_order_mark();
  Expected<bool> read_cell(std::string& cell);  // whether another cell follows
  Expected<bool> quoted_rest(std::string& cell);
  Status grow(std::size_t by);

  ByteStream stream_;
  char delimiter_;
  std::uint64_t line_ = 1, begin_line_ = 1;  // of the next byte; of the record's start
  std::size_t size_ = 0;                     // of the record so far
  bool started_ = false;
};

}  // namespace troupe
