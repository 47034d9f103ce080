// What the fields of another log's entry must be, beyond its form.
#ifndef REGATTA_STORAGE_IMPORT_CONTENT_H_
#define REGATTA_STORAGE_IMPORT_CONTENT_H_

#include "absl/status/status.h"
#include "regatta/v1/log_service.pb.h"

namespace regatta {

// Names and texts hold no control characters, numbers are finite and ratios
// lie inside their intervals. InvalidArgument names the field.
absl::Status CheckContent(const v1::LogEntry& entry);

}  // namespace regatta

#endif  // REGATTA_STORAGE_IMPORT_CONTENT_H_
