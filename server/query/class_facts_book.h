// What a tuning log says of its device classes, remembered.
//
// Facts are read once; again when a class is asked for that was not among them
// and the log has grown since. So a class that an import brought is found, and
// a question costs no scan of the log.
//
// Thread safety: Find may be called from any thread.
#ifndef REGATTA_SERVER_QUERY_CLASS_FACTS_BOOK_H_
#define REGATTA_SERVER_QUERY_CLASS_FACTS_BOOK_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "storage/tuning_log.h"

namespace regatta {

class ClassFactsBook {
 public:
  // `log` is not owned and outlives the book.
  explicit ClassFactsBook(const TuningLog* log) : log_(log) {}

  // Absent for a class without a best-known row. What the log has to say when
  // it cannot be read is logged, and the class is then unknown.
  std::optional<ClassFacts> Find(const std::string& device_class);

 private:
  absl::Status ReadIfGrown();

  const TuningLog* log_;
  std::mutex mutex_;
  int64_t records_ = -1;  // in the log when it was read; -1: never
  std::map<std::string, ClassFacts> facts_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_CLASS_FACTS_BOOK_H_
