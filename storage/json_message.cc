#include "storage/json_message.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/json_reason.h"
#include "base/strings.h"

namespace regatta {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Json = nlohmann::json;

// "CACHE_STATE_" of CacheState: what every enumerator's name begins with.
std::string EnumPrefix(const EnumDescriptor& type) {
  std::string prefix;
  for (const char c : type.name()) {
    if (absl::ascii_isupper(c) && !prefix.empty()) prefix.push_back('_');
    prefix.push_back(absl::ascii_toupper(c));
  }
  return prefix + "_";
}

std::string EnumText(const EnumValueDescriptor& value) {
  const std::string prefix = EnumPrefix(*value.type());
  CHECK(value.name().compare(0, prefix.size(), prefix) == 0) << value.name();
  return absl::AsciiStrToLower(value.name().substr(prefix.size()));
}

// ---- writing ----

void AppendText(const std::string& text, std::string* json) {
  // Messages hold UTF-8 only: protobuf refuses to parse anything else.
  absl::StrAppend(
      json, Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

void AppendDouble(double value, std::string* json) {
  if (std::isfinite(value)) {
    absl::StrAppend(json, Json(value).dump());  // shortest that reads back
  } else if (std::isnan(value)) {
    absl::StrAppend(json, "\"NaN\"");
  } else {
    absl::StrAppend(json, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
  }
}

// Element `i` of a repeated field; the field itself for -1.
void AppendValue(const Message& message, const FieldDescriptor* field, int i,
                 std::string* json) {
  const Reflection& r = *message.GetReflection();
  const bool one = i < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      absl::StrAppend(json, one ? r.GetInt32(message, field)
                                : r.GetRepeatedInt32(message, field, i));
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      absl::StrAppend(json, one ? r.GetInt64(message, field)
                                : r.GetRepeatedInt64(message, field, i));
      return;
    case FieldDescriptor::CPPTYPE_UINT32:
      absl::StrAppend(json, one ? r.GetUInt32(message, field)
                                : r.GetRepeatedUInt32(message, field, i));
      return;
    case FieldDescriptor::CPPTYPE_UINT64:
      absl::StrAppend(json, one ? r.GetUInt64(message, field)
                                : r.GetRepeatedUInt64(message, field, i));
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return AppendDouble(one ? r.GetDouble(message, field)
                              : r.GetRepeatedDouble(message, field, i),
                          json);
    case FieldDescriptor::CPPTYPE_BOOL:
      absl::StrAppend(json, (one ? r.GetBool(message, field)
                                 : r.GetRepeatedBool(message, field, i))
                                ? "true"
                                : "false");
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      return AppendText(one ? r.GetString(message, field)
                            : r.GetRepeatedString(message, field, i),
                        json);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return AppendJson(one ? r.GetMessage(message, field)
                            : r.GetRepeatedMessage(message, field, i),
                        json);
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int number = one ? r.GetEnumValue(message, field)
                             : r.GetRepeatedEnumValue(message, field, i);
      const EnumValueDescriptor* value =
          field->enum_type()->FindValueByNumber(number);
      // Of a newer release: its number, which only that one would read.
      if (value == nullptr) {
        absl::StrAppend(json, number);
      } else {
        absl::StrAppend(json, "\"", EnumText(*value), "\"");
      }
      return;
    }
    case FieldDescriptor::CPPTYPE_FLOAT:
      break;
  }
  CHECK(false) << field->full_name() << " has a type without JSON";
}

// ---- reading ----

// Takes the tokens of one text into a message, without a tree in between.
class Reader : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(Message* message) : root_(message) {}

  const absl::Status& status() const { return status_; }

  bool null() override { return Wrong("null"); }
  bool boolean(bool value) override;
  bool number_integer(number_integer_t value) override {
    return Whole(value, /*negative=*/value < 0, value);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Whole(value, /*negative=*/false, static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t& value) override { return Wrong("bytes"); }
  bool start_object(std::size_t elements) override;
  bool key(string_t& name) override;
  bool end_object() override;
  bool start_array(std::size_t elements) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& error) override;

 private:
  struct Frame {
    Message* message;
    const FieldDescriptor* field = nullptr;  // whose value comes next
    bool in_array = false;
    int elements = 0;  // of the array so far
    std::set<int> seen;
  };

  bool Fail(const std::string& what);
  bool Wrong(std::string_view got);
  // The field that takes the next value; null after an error.
  const FieldDescriptor* Target(std::string_view got);
  bool Whole(uint64_t bits, bool negative, int64_t value);
  template <typename Integer>
  bool InRange(uint64_t bits, bool negative, int64_t value, Integer* out);
  bool Double(double value);
  std::string Path() const;

  Message* const root_;
  std::vector<Frame> frames_;
  absl::Status status_;
};

std::string Reader::Path() const {
  std::string path;
  for (const Frame& frame : frames_) {
    if (frame.field == nullptr) break;
    absl::StrAppend(&path, path.empty() ? "" : ".", frame.field->name());
    if (frame.in_array) absl::StrAppend(&path, "[", frame.elements, "]");
  }
  return path;
}

bool Reader::Fail(const std::string& what) {
  const std::string path = Path();
  status_ = absl::InvalidArgumentError(
      path.empty() ? what : absl::StrCat(path, ": ", what));
  return false;
}

std::string TypeInWords(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "an object";
    case FieldDescriptor::CPPTYPE_ENUM:
      return "a name";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    default:
      return "a whole number";
  }
}

bool Reader::Wrong(std::string_view got) {
  if (frames_.empty() || frames_.back().field == nullptr) {
    return Fail(absl::StrCat("expected an object, found ", std::string(got)));
  }
  const Frame& frame = frames_.back();
  const bool list = frame.field->is_repeated() && !frame.in_array;
  return Fail(absl::StrCat("expected ",
                           list ? "a list" : TypeInWords(*frame.field),
                           ", found ", std::string(got)));
}

const FieldDescriptor* Reader::Target(std::string_view got) {
  if (frames_.empty() || frames_.back().field == nullptr ||
      frames_.back().field->is_repeated() != frames_.back().in_array) {
    Wrong(got);
    return nullptr;
  }
  return frames_.back().field;
}

// Sets, or adds to, the field at hand.
#define REGATTA_PUT(Type, value)                           \
  do {                                                     \
    Frame& frame = frames_.back();                         \
    const Reflection& r = *frame.message->GetReflection(); \
    if (frame.in_array) {                                  \
      r.Add##Type(frame.message, frame.field, value);      \
      ++frame.elements;                                    \
    } else {                                               \
      r.Set##Type(frame.message, frame.field, value);      \
    }                                                      \
    return true;                                           \
  } while (false)

bool Reader::boolean(bool value) {
  const FieldDescriptor* field = Target("a boolean");
  if (field == nullptr) return false;
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_BOOL) {
    return Wrong("a boolean");
  }
  REGATTA_PUT(Bool, value);
}

template <typename Integer>
bool Reader::InRange(uint64_t bits, bool negative, int64_t value,
                     Integer* out) {
  using Limits = std::numeric_limits<Integer>;
  const bool fits = negative ? Limits::is_signed &&
                                   value >= static_cast<int64_t>(Limits::min())
                             : bits <= static_cast<uint64_t>(Limits::max());
  if (!fits) {
    return Fail(
        absl::StrCat(negative ? absl::StrCat(value) : absl::StrCat(bits),
                     " is out of range"));
  }
  *out = static_cast<Integer>(bits);
  return true;
}

bool Reader::Whole(uint64_t bits, bool negative, int64_t value) {
  const FieldDescriptor* field = Target("a number");
  if (field == nullptr) return false;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      int32_t out = 0;
      if (!InRange(bits, negative, value, &out)) return false;
      REGATTA_PUT(Int32, out);
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t out = 0;
      if (!InRange(bits, negative, value, &out)) return false;
      REGATTA_PUT(Int64, out);
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      uint32_t out = 0;
      if (!InRange(bits, negative, value, &out)) return false;
      REGATTA_PUT(UInt32, out);
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      uint64_t out = 0;
      if (!InRange(bits, negative, value, &out)) return false;
      REGATTA_PUT(UInt64, out);
    }
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Double(negative ? static_cast<double>(value)
                             : static_cast<double>(bits));
    default:
      return Wrong("a number");
  }
}

bool Reader::Double(double value) { REGATTA_PUT(Double, value); }

bool Reader::number_float(number_float_t value, const string_t& text) {
  const FieldDescriptor* field = Target("a number");
  if (field == nullptr) return false;
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_DOUBLE) {
    return Wrong(absl::StrCat("the number ", text.substr(0, 40)));
  }
  return Double(value);
}

bool Reader::string(string_t& value) {
  const FieldDescriptor* field = Target("a text");
  if (field == nullptr) return false;
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    REGATTA_PUT(String, std::move(value));
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (value == "NaN") return Double(std::nan(""));
    if (value == "Infinity") return Double(kInfinity);
    if (value == "-Infinity") return Double(-kInfinity);
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    const EnumDescriptor& type = *field->enum_type();
    for (int i = 0; i < type.value_count(); ++i) {
      if (EnumText(*type.value(i)) != value) continue;
      REGATTA_PUT(EnumValue, type.value(i)->number());
    }
    return Fail(absl::StrCat("'", value.substr(0, 40), "' is no ",
                             absl::AsciiStrToLower(type.name())));
  }
  return Wrong("a text");
}

bool Reader::start_object(std::size_t elements) {
  if (frames_.empty()) {
    frames_.push_back(Frame{.message = root_});
    return true;
  }
  const FieldDescriptor* field = Target("an object");
  if (field == nullptr) return false;
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
    return Wrong("an object");
  }
  Frame& frame = frames_.back();
  const Reflection& r = *frame.message->GetReflection();
  frames_.push_back(Frame{
      .message = frame.in_array ? r.AddMessage(frame.message, field)
                                : r.MutableMessage(frame.message, field)});
  return true;
}

bool Reader::key(string_t& name) {
  Frame& frame = frames_.back();
  frame.field = nullptr;
  const FieldDescriptor* field =
      frame.message->GetDescriptor()->FindFieldByName(name);
  if (field == nullptr) {
    return Fail(absl::StrCat("there is no field '", name.substr(0, 40), "' in ",
                             frame.message->GetDescriptor()->name()));
  }
  if (!frame.seen.insert(field->number()).second) {
    return Fail(absl::StrCat("the field '", name, "' is given twice"));
  }
  if (const auto* oneof = field->containing_oneof();
      oneof != nullptr &&
      frame.message->GetReflection()->HasOneof(*frame.message, oneof)) {
    return Fail(absl::StrCat("the field '", name,
                             "' excludes another that is given, too"));
  }
  frame.field = field;
  return true;
}

bool Reader::end_object() {
  frames_.pop_back();
  if (!frames_.empty()) {
    if (frames_.back().in_array) ++frames_.back().elements;
  }
  return true;
}

bool Reader::start_array(std::size_t elements) {
  if (frames_.empty() || frames_.back().field == nullptr ||
      !frames_.back().field->is_repeated() || frames_.back().in_array) {
    return Wrong("a list");
  }
  frames_.back().in_array = true;
  frames_.back().elements = 0;
  return true;
}

bool Reader::end_array() {
  frames_.back().in_array = false;
  return true;
}

bool Reader::parse_error(std::size_t position, const std::string& last_token,
                         const nlohmann::detail::exception& error) {
  // The text is one line.
  status_ = absl::InvalidArgumentError(
      absl::StrCat("no JSON at column ", position, ": ",
                   ToAbsl(JsonReason(error.what()).substr(0, 200))));
  return false;
}

#undef REGATTA_PUT

}  // namespace

void AppendJson(const Message& message, std::string* json) {
  std::vector<const FieldDescriptor*> fields;
  const Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);  // by number
  json->push_back('{');
  bool first = true;
  for (const FieldDescriptor* field : fields) {
    absl::StrAppend(json, first ? "\"" : ",\"", field->name(), "\":");
    first = false;
    if (!field->is_repeated()) {
      AppendValue(message, field, -1, json);
      continue;
    }
    json->push_back('[');
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      if (i > 0) json->push_back(',');
      AppendValue(message, field, i, json);
    }
    json->push_back(']');
  }
  json->push_back('}');
}

absl::Status ParseJson(std::string_view json, Message* message) {
  Reader reader(message);
  if (Json::sax_parse(json.begin(), json.end(), &reader)) {
    return absl::OkStatus();
  }
  CHECK(!reader.status().ok()) << "JSON refused without a reason";
  return reader.status();
}

bool SupportsJson(const Descriptor& message) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (field.is_map() || field.type() == FieldDescriptor::TYPE_BYTES ||
        field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
      return false;
    }
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
        field.message_type() != &message &&
        !SupportsJson(*field.message_type())) {
      return false;
    }
  }
  return true;
}

}  // namespace regatta
