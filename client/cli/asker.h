#ifndef REGATTA_CLIENT_CLI_ASKER_H_
#define REGATTA_CLIENT_CLI_ASKER_H_

#include <string>

namespace regatta::cli {

// Who runs this program, for servers that do not know their callers: USER@HOST.
std::string AskerName();

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_ASKER_H_
