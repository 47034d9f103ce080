// The strings of a message as they must be to be read again.
#ifndef REGATTA_PROTO_UTF8_TEXTS_H_
#define REGATTA_PROTO_UTF8_TEXTS_H_

#include "google/protobuf/message.h"

namespace regatta {

// Makes each string of `message` and of the messages in it UTF-8 (base/utf8.h).
// Protobuf writes other bytes, too, but whoever reads them refuses the whole
// message. Bytes fields and the keys and values of maps stay as they are.
void MakeTextsUtf8(google::protobuf::Message& message);

}  // namespace regatta

#endif  // REGATTA_PROTO_UTF8_TEXTS_H_
