#include "proto/utf8_texts.h"

#include <string>
#include <vector>

#include "base/utf8.h"

namespace regatta {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void MakeTextUtf8(const FieldDescriptor* field, Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (!field->is_repeated()) {
    std::string scratch;
    const std::string& text =
        reflection.GetStringReference(message, field, &scratch);
    if (!IsUtf8(text)) reflection.SetString(&message, field, Utf8(text));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    std::string scratch;
    const std::string& text = reflection.GetRepeatedStringReference(
        message, field, i, &scratch);
    if (!IsUtf8(text)) {
      reflection.SetRepeatedString(&message, field, i, Utf8(text));
    }
  }
}

void MakePartsUtf8(const FieldDescriptor* field, Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (!field->is_repeated()) {
    return MakeTextsUtf8(*reflection.MutableMessage(&message, field));
  }
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    MakeTextsUtf8(*reflection.MutableRepeatedMessage(&message, field, i));
  }
}

}  // namespace

void MakeTextsUtf8(Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_map()) continue;
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      MakeTextUtf8(field, message);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      MakePartsUtf8(field, message);
    }
  }
}

}  // namespace regatta
