// Text of others on one line of a log or a terminal.
#ifndef REGATTA_BASE_ONE_LINE_H_
#define REGATTA_BASE_ONE_LINE_H_

#include <string>
#include <string_view>

namespace regatta {

// `text` with its control characters written out: "\n", "\t", "\x1b". Nothing
// in it begins a line or speaks to a terminal then; the rest stays as it is,
// UTF-8 included, but for what turns the direction of text round, which is
// written as "\u202e".
std::string OneLine(std::string_view text);

}  // namespace regatta

#endif  // REGATTA_BASE_ONE_LINE_H_
