// Text of others on one line of a log or a terminal.
#ifndef REGATTA_BASE_ONE_LINE_H_
#define REGATTA_BASE_ONE_LINE_H_

#include <string>
#include <string_view>

namespace regatta {

// `text` with its control characters written out: "\n", "\t", "\x1b". Nothing
// in it begins a line or speaks to a terminal then. Bytes that are no UTF-8 are
// written out alike ("\xff"), so that the line is UTF-8, and so is what turns
// the direction of text round ("\u202e"); the rest stays as it is.
std::string OneLine(std::string_view text);

}  // namespace regatta

#endif  // REGATTA_BASE_ONE_LINE_H_
