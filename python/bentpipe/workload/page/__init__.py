"""Pages: resources that name each other, from files and from recorded visits."""

from bentpipe.workload.page.catalogue import file_of, load, names
from bentpipe.workload.page.model import Page, Resource, ResourceType

__all__ = ["Page", "Resource", "ResourceType", "file_of", "load", "names"]
