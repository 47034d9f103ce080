#include "server/query/class_facts_book.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status_macros.h"

namespace regatta {

std::optional<ClassFacts> ClassFactsBook::Find(
    const std::string& device_class) {
  std::lock_guard lock(mutex_);
  auto found = facts_.find(device_class);
  if (found == facts_.end()) {
    const absl::Status read = ReadIfGrown();
    if (!read.ok()) LOG(kWarning) << "facts of device classes: " << read;
    found = facts_.find(device_class);
  }
  if (found == facts_.end()) return std::nullopt;
  return found->second;
}

absl::Status ClassFactsBook::ReadIfGrown() {
  ASSIGN_OR_RETURN(const int64_t records, log_->CountRecords());
  if (records == records_) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<ClassFacts> facts, log_->FactsOfClasses());
  facts_.clear();
  for (ClassFacts& one : facts) {
    std::string name = one.device_class;
    facts_.emplace(std::move(name), std::move(one));
  }
  records_ = records;
  return absl::OkStatus();
}

}  // namespace regatta
