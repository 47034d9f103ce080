// Messages as JSON, for files that outlive a release: every field by its name
// in the .proto, in the order of its number, and read back with nothing lost.
//
// Differs from protobuf's own mapping where people and other tools read the
// file: 64-bit integers are numbers, enumerators are spelled as everywhere
// else in Regatta ("ok", "warm"), and reading is strict.
//
// Numbers, booleans and enumerators at their default and empty texts, lists and
// messages are left out. Doubles that JSON has no number for are the texts
// "NaN", "Infinity" and "-Infinity". Fields of type bytes and maps are not
// supported; SupportsJson says whether a message has any.
#ifndef REGATTA_STORAGE_JSON_MESSAGE_H_
#define REGATTA_STORAGE_JSON_MESSAGE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace regatta {

// Appends the object, without blanks and line breaks.
void AppendJson(const google::protobuf::Message& message, std::string* json);

// Reads one object. InvalidArgument says where ("record.result.time_ns") and
// what: text that is no JSON or no UTF-8, a field that the message does not
// have, a value of another type or out of range, a field given twice.
// `message` is then in any state.
//
// Memory: proportional to the message. A text has no depth beyond that of the
// message.
absl::Status ParseJson(std::string_view json,
                       google::protobuf::Message* message);

bool SupportsJson(const google::protobuf::Descriptor& message);

}  // namespace regatta

#endif  // REGATTA_STORAGE_JSON_MESSAGE_H_
