//! Links, addresses, routes and neighbours over netlink.
