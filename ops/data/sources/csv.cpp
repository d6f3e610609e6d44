// `csv DELIMITER header|plain COLUMN...`: a file of comma-separated values (RFC 4180). Records end
// with "\n" or "\r\n". A cell in double quotes may have delimiters, line ends, and "" for a quote.
// Empty lines are skipped, and with `header` the first record, too.
//
// A column is "skip", a dtype with "=DEFAULT" for empty cells, or e.g. "f32*8", 8 cells that form
// one component. Examples have one component per column that is not skipped: [], or [cells]. The
// file, plain or gzipped, is read from start to end.
#include <optional>
#include <string>

#include "core/number.hpp"
#include "ops/data/byte_stream.hpp"
#include "ops/data/sources/csv_records.hpp"
#include "ops/data/stage_kind.hpp"

namespace troupe {

namespace {

struct Column {
  DType dtype = DType::invalid;  // invalid: skipped
  std::int64_t cells = 1;
  bool together = false;  // a component of one dimension
  std::optional<std::string> missing;
};

struct CsvSpec {
  char delimiter = ',';
  bool header = false;
  std::vector<Column> columns;
  std::size_t cells = 0;  // of a record
};

template <class T>
bool parse_number(std::string_view text, T* out) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const std::optional<T> value = troupe::parse_number<T>(text);
  if (value) *out = *value;
  return value.has_value();
}

bool parse_truth(std::string_view text, bool* out) {
  *out = text == "1" || text == "true" || text == "True" || text == "TRUE";
  return *out || text == "0" || text == "false" || text == "False" || text == "FALSE";
}

// Element `i` of `to` from the text of a cell; false when it is no such value.
bool parse_cell(std::string_view text, Tensor& to, std::int64_t i) {
  switch (to.dtype()) {
    case DType::f32:
      return parse_number(text, to.mutable_data<float>() + i);
    case DType::f64:
      return parse_number(text, to.mutable_data<double>() + i);
    case DType::i32:
      return parse_number(text, to.mutable_data<std::int32_t>() + i);
    case DType::i64:
      return parse_number(text, to.mutable_data<std::int64_t>() + i);
    case DType::u8:
      return parse_number(text, to.mutable_data<std::uint8_t>() + i);
    case DType::bool_:
      return parse_truth(text, to.mutable_data<bool>() + i);
    case DType::string:
      to.mutable_data<std::string>()[i] = text;
      return true;
    default:
      return false;
  }
}

constexpr DType kDTypes[] = {DType::f32, DType::f64,   DType::i32,   DType::i64,
                             DType::u8,  DType::bool_, DType::string};

Shape shape_of(const Column& column) { return column.together ? Shape{column.cells} : Shape{}; }

class CsvCursor final : public Cursor {
 public:
  CsvCursor(CsvRecords records, const CsvSpec& spec)
      : records_(std::move(records)), spec_(spec), header_(spec.header) {}
  Expected<std::optional<std::vector<Tensor>>> next() override {
    goes_on_ = false;
    TROUPE_TRY(bool found, records_.next(cells_));
    if (std::exchange(header_, false) && found) {
      TROUPE_TRY(found, records_.next(cells_));
    }
    goes_on_ = true;
    if (!found) return std::optional<std::vector<Tensor>>();
    if (cells_.size() != spec_.cells)
      return records_.wrong(std::to_string(cells_.size()) + " cells, not " +
                            std::to_string(spec_.cells));
    std::vector<Tensor> values;
    std::size_t cell = 0;
    for (const Column& column : spec_.columns) {
      if (column.dtype == DType::invalid) {
        cell += std::size_t(column.cells);
        continue;
      }
      TROUPE_TRY(Tensor value, Tensor::make(column.dtype, shape_of(column)));
      for (std::int64_t i = 0; i < column.cells; ++i) TROUPE_TRY(parse(column, cell++, value, i));
      values.push_back(std::move(value));
    }
    return std::optional(std::move(values));
  }
  bool goes_on() const override { return goes_on_; }
  std::unique_ptr<Cursor> clone() const override { return std::make_unique<CsvCursor>(*this); }
  std::size_t bytes_held() const override { return sizeof *this + records_.bytes_held(); }

 private:
  Status parse(const Column& column, std::size_t cell, Tensor& value, std::int64_t i) {
    const bool empty = cells_[cell].empty();
    const std::string& text = empty && column.missing ? *column.missing : cells_[cell];
    if (parse_cell(text, value, i)) return ok_status();
    return records_.wrong("column " + std::to_string(cell + 1) + ": '" + text.substr(0, 40) +
                          "' is no " + std::string(dtype_name(column.dtype)) +
                          (empty ? ", and the column has no default" : ""));
  }

  CsvRecords records_;
  const CsvSpec& spec_;   // the source's
  bool header_;           // is still to come
  bool goes_on_ = false;  // behind a record whose cells are wrong, not where quotes are
  std::vector<std::string> cells_;
};

Signature signature_of(const CsvSpec& spec) {
  Signature all;
  for (const Column& column : spec.columns)
    if (column.dtype != DType::invalid) all.push_back({column.dtype, shape_of(column)});
  return all;
}

class CsvSource final : public Source {
 public:
  CsvSource(DataFilePtr file, CsvSpec spec)
      : Source(signature_of(spec)), file_(std::move(file)), spec_(std::move(spec)) {}
  Expected<std::unique_ptr<Cursor>> start() const override {
    TROUPE_TRY(CsvRecords records, CsvRecords::open(file_, spec_.delimiter));
    return std::unique_ptr<Cursor>(std::make_unique<CsvCursor>(std::move(records), spec_));
  }

 private:
  DataFilePtr file_;
  CsvSpec spec_;
};

Expected<Column> parse_column(const StageText& stage, std::size_t i) {
  constexpr std::int64_t kMostCells = 1'000'000;
  TROUPE_TRY(const std::string word, stage.word(i));
  const auto wrong = [&] { return invalid_argument("'" + word + "' is no column of a CSV file"); };
  Column column;
  std::string_view left = word;
  if (const auto at = left.find('='); at != left.npos) {
    column.missing = std::string(left.substr(at + 1));
    left = left.substr(0, at);
  }
  if (const auto at = left.find('*'); at != left.npos) {
    column.together = true;
    if (!parse_number(left.substr(at + 1), &column.cells) || column.cells < 1 ||
        column.cells > kMostCells)
      return wrong();
    left = left.substr(0, at);
  }
  if (left == "skip") return column.missing ? Expected<Column>(wrong()) : column;
  for (DType dtype : kDTypes)
    if (dtype_name(dtype) == left) column.dtype = dtype;
  if (column.dtype == DType::invalid) return wrong();
  if (!column.missing) return column;
  TROUPE_TRY(Tensor value, Tensor::make(column.dtype, Shape{}));
  if (!parse_cell(*column.missing, value, 0))
    return invalid_argument("the default of column '" + word + "' is no " + std::string(left));
  return column;
}

Expected<CsvSpec> csv_spec(const StageText& stage) {
  CsvSpec spec;
  if (stage.arguments.size() == 2)
    return invalid_argument(
        "csv: the list of columns is empty; say what the file's columns hold, as in "
        "{{.dtype = DType::f32, .cells = 4}, {.dtype = DType::i64}}");
  TROUPE_TRY(stage.takes(3, 100'000));
  const std::string& delimiter = stage.arguments[0];
  if (delimiter.size() != 1 || delimiter == "\"" || delimiter == "\n" || delimiter == "\r")
    return invalid_argument("a delimiter is one character, and neither a quote nor an end of line");
  spec.delimiter = delimiter[0];
  if (stage.arguments[1] != "header" && stage.arguments[1] != "plain")
    return invalid_argument("stage '" + stage.text() + "' says neither header nor plain");
  spec.header = stage.arguments[1] == "header";
  for (std::size_t i = 2; i < stage.arguments.size(); ++i) {
    TROUPE_TRY(Column column, parse_column(stage, i));
    spec.cells += std::size_t(column.cells);
    spec.columns.push_back(std::move(column));
  }
  if (signature_of(spec).empty()) return invalid_argument("all columns of a CSV file are skipped");
  return spec;
}

Expected<Signature> signature_of_csv(const StageText& stage, const std::vector<Signature>&) {
  TROUPE_TRY(const CsvSpec spec, csv_spec(stage));
  return signature_of(spec);
}

Expected<StagePtr> open_csv(const StageText& stage, Signature, Stages, StageOpening& opening) {
  TROUPE_TRY(CsvSpec spec, csv_spec(stage));
  TROUPE_TRY(DataFilePtr file, opening.next_file());
  return source_stage(std::make_unique<CsvSource>(std::move(file), std::move(spec)));
}

}  // namespace

StageKind csv_source() { return {"csv", 0, signature_of_csv, open_csv}; }

}  // namespace troupe
