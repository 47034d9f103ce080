// LogAccess to the log of a server.
#ifndef REGATTA_CLIENT_CLI_LOG_CLIENT_H_
#define REGATTA_CLIENT_CLI_LOG_CLIENT_H_

#include <memory>

#include "client/cli/log_access.h"
#include "client/cli/server_address.h"

namespace regatta::cli {

std::unique_ptr<LogAccess> MakeServerLog(ServerAddress address);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_LOG_CLIENT_H_
