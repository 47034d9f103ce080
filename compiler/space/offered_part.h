// A part of a space that is made when somebody first looks at it.
#ifndef REGATTA_COMPILER_SPACE_OFFERED_PART_H_
#define REGATTA_COMPILER_SPACE_OFFERED_PART_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/space/rule.h"

namespace regatta {

// Thread safety: all methods may be called from any thread. REQUIRES: the
// context that the rule matched outlives it.
class OfferedPart {
 public:
  OfferedPart(const SpaceRule& rule, PartOffer offer)
      : label_(rule.name()), offer_(std::move(offer)) {
    if (stage_count() > 1) absl::StrAppend(&label_, ":", stage_count());
  }

  // As in a schedule's text: "rows:3".
  const std::string& label() const { return label_; }
  int stage_count() const { return offer_.stage_count; }

  const Part& Get() const {
    std::call_once(once_, [this] { part_ = offer_.make(); });
    return *part_;
  }

 private:
  std::string label_;
  PartOffer offer_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<const Part> part_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_OFFERED_PART_H_
