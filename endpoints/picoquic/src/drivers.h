// What drives the endpoint: the coordinator's frames, or sockets and this machine's clock (endpoints/CONTRACT.md).
#pragma once

int run_virtual_time();
int run_sockets();
