#ifndef REGATTA_TESTS_FLEET_SIM_BREAK_CONNECTIONS_H_
#define REGATTA_TESTS_FLEET_SIM_BREAK_CONNECTIONS_H_

namespace regatta::fleet_sim {

// Breaks every TCP connection of this process to the port, without a word to
// whoever holds it. Returns how many.
int BreakConnections(int port);

}  // namespace regatta::fleet_sim

#endif  // REGATTA_TESTS_FLEET_SIM_BREAK_CONNECTIONS_H_
