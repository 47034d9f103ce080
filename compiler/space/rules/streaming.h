// Results that go past the caches. Large ones that nobody reads soon only drive
// other data out, and an ordinary store first reads the line that it replaces.
// Only whole vectors are streamed: a part of a line costs memory more than a
// line does.
#ifndef REGATTA_COMPILER_SPACE_RULES_STREAMING_H_
#define REGATTA_COMPILER_SPACE_RULES_STREAMING_H_

#include "compiler/space/rule.h"

namespace regatta {

// Whether a tensor is large enough for its stores to be a choice.
bool MayStream(const SpaceContext& context, int tensor);

// Whether it is streamed unless a schedule says otherwise: it fills the last
// cache alone, so that its readers find little of it there, and where its first
// row can be streamed, all can.
bool StreamsByDefault(const SpaceContext& context, int tensor);

// The choice, by the name of `kStoresKnob`: 0 is "cached", 1 "streamed".
inline constexpr std::string_view kStoresKnob = "stores";
Knob StoresKnob();

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_STREAMING_H_
